"""The kernels on the CPU: a test tool that compiles the real ``.cu`` text with g++ and runs it as CuPy would::

    from tests.emulator.driver import Emulator

    emulator = Emulator(checked=True, seed=7)
    xp = emulator.xp  # stands for the module `cupy`
    kernel = xp.RawModule(code=text, options=("--fmad=false",)).get_function("histogram")
    out = xp.zeros(256, np.uint32)
    kernel((4,), (128,), (xp.asarray(codes), np.int32(n), out), shared_mem=1024)
    out.get()
    emulator.counters["histogram"].shared_atomics

Cost, measured on one core of an AMD EPYC with g++ 12 (median of 9 runs; kernel text compiles in 0.2 s, once):

=========================  =======  =========
nanoseconds                plain    checked
=========================  =======  =========
atomic, shared or global   2        20 .. 32
global read                1.6      10
global or shared write     2 .. 3   18 .. 30
barrier, per thread        14       12
shuffle, per lane          18       17
__syncwarp, per lane       14       22
thread without work        27       37
launch                     75,000   50,000
=========================  =======  =========

**Plain** mode compiles with ``-O2`` and no hooks. Threads and blocks take turns in random order, and change at barriers
and warp operations only. Shared memory and fresh arrays hold garbage. Barriers and masks are checked; wild addresses
meet pages without access; what is written just behind an array is found after the block or the launch.

**Checked** mode compiles with ``-fsanitize=thread`` and parts of ``undefined`` against hooks of its own. It also
changes threads at accesses, and refuses: an access outside the arguments and the shared arrays, a write through a
pointer to const, a race, reading what was never written, a misaligned vector, undefined arithmetic (signed overflow,
shifts, casts, division by zero), an index outside a local array. It counts bytes. Run it first: in plain mode a wild
write can hit the test process.

Rules stricter than CUDA's: all lanes that a mask names must exist and must not have ended; all threads of a block must
reach its barriers; a barrier and a warp operation have one place in the text; arguments have the exact type.

What it cannot show: memory that another block may see after __threadfence (each such use is a race here: blocks do not
wait for blocks), float32 denormals flushed to zero, a barrier in a function called at two places, bank conflicts,
time.

Only ``__syncwarp`` orders the memory accesses of lanes: CUDA does not promise it of shuffles and votes. With
``Emulator(votes_order_memory=True)`` they do.
"""
