// Runs small random programs of accesses and barriers; test_races.py knows which of them race.
//
// program (n_phases, 3, threads of all blocks): 0 = nothing, else 3 * place + 1 (read), + 2 (write), + 3 (atomic).
// ends (n_phases): what every thread does after a phase: 0 nothing, 1 __syncwarp, 2 __syncthreads, 3 __any_sync.
// Grid (blocks), block (a multiple of 32).

#if PLACES_IN_SHARED
#define MEMORY held
#else
#define MEMORY memory
#endif

extern "C" __global__ void litmus(const int* program, const int* ends, int n_phases, CELL* memory, unsigned* sink) {
    __shared__ CELL held[8];
    if (threadIdx.x < 8) held[threadIdx.x] = 0;
    __syncthreads();
    const int n_threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = memory == (CELL*)0;
    for (int phase = 0; phase < n_phases; ++phase) {
        for (int k = 0; k < 3; ++k) {
            const int op = program[(3 * phase + k) * n_threads + thread];
            if (op == 0) continue;
            const int place = (op - 1) / 3;
            if (op % 3 == 1) sum += MEMORY[place];
            if (op % 3 == 2) MEMORY[place] = (CELL)thread;
#if CELL_IS_WORD
            if (op % 3 == 0) atomicAdd(&MEMORY[place], 1u);
#endif
        }
        if (ends[phase] == 1) __syncwarp();
        if (ends[phase] == 2) __syncthreads();
        if (ends[phase] == 3) __any_sync(0xFFFFFFFFu, 1);
    }
    sink[thread] = sum;
}
