"""Compile kernel text for the CPU with the host compiler. Libraries are cached by content.

The cache lies in ``$XDG_CACHE_HOME/gputree-emulator`` (``~/.cache`` by default), or in the folder for temporary files
where that cannot be written. Workers may compile at the same time: a finished library is moved into place at once.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tests.emulator.assembly import edit_assembly
from tests.emulator.errors import CompileError, CompilerMissing

HERE = Path(__file__).resolve().parent
OLDEST_GCC = 12  # -ftrivial-auto-var-init
RUNTIME_DEFINES: tuple[str, ...] = ()  # a test sets -DEMU_UCONTEXT, which other processors use
DAYS_KEPT = 30

# binutils mix up file names of version 5
_COMMON = ("-std=gnu++17", "-O2", "-g1", "-gdwarf-4", "-fPIC", "-fno-exceptions", "-fvisibility=hidden")
# Contraction would round once where NumPy rounds twice. Types are punned, as device compilers allow. A tail call would
# hide the line that made it, and idioms made into library calls would hide accesses.
_KERNEL = (
    *("-ffp-contract=off", "-fno-strict-aliasing", "-fno-optimize-sibling-calls", "-fno-tree-loop-distribute-patterns"),
    *("-fstack-clash-protection", "-Wno-unknown-pragmas", "-Werror=return-type"),
)
_PLAIN = ("-fwrapv",)
_CHECKED = (
    "-DEMU_CHECKED",
    "-fsanitize=thread,alignment,bounds,shift,signed-integer-overflow,integer-divide-by-zero,float-cast-overflow",
    "-ftrivial-auto-var-init=pattern",  # garbage in local variables
    "-fno-tree-vectorize",  # accesses keep the width that the text gives them
)
_IGNORED_OPTIONS = re.compile(r"--?std=c\+\+(11|14|17)|-lineinfo|--generate-line-info")
_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+((?:(?:__align__|alignas)\s*\(\s*\w+\s*\)\s*)?)([\w:\s]*?[\w:])\s+(\w+)\s*\[\s*\]\s*;"
)
_ANY_DYNAMIC = re.compile(r"extern\s+__shared__")
_GLOBAL = re.compile(
    r"__global__\s+((?:\w+\s*\((?:[^()]|\([^()]*\))*\)\s*)?)void\s+((?:\w+\s*\([^()]*\)\s*)?)(\w+)\s*\("
)
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*([^,()]+)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def find_compiler() -> str:
    """Return the host compiler, or raise `CompilerMissing` with what to do."""
    if sys.platform != "linux":
        raise CompilerMissing(f"the emulator needs Linux; this is {sys.platform}: run its tests there")
    path = shutil.which("g++")
    if path is None:
        raise CompilerMissing(
            f"no host compiler: the emulator needs g++ {OLDEST_GCC} or later; install it (apt-get install g++)"
        )
    version = _version(path)
    if "clang" in version or int(version.split(".")[0]) < OLDEST_GCC:
        raise CompilerMissing(f"g++ is {version.strip()}; the emulator needs GCC {OLDEST_GCC} or later: install it")
    return path


@lru_cache
def _version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    if "clang" in done.stdout:
        return done.stdout
    return subprocess.run([path, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout


@lru_cache
def cache_folder() -> Path:
    """Return a folder that can be written, made if need be; drop libraries not used for a month."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    user = getattr(os, "getuid", lambda: 0)()
    for folder in (Path(home) / "gputree-emulator", Path(tempfile.gettempdir()) / f"gputree-emulator-{user}"):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        for old in folder.glob("*"):
            if old.is_file() and time.time() - old.stat().st_mtime > DAYS_KEPT * 86400:
                old.unlink(missing_ok=True)
        return folder
    raise CompilerMissing(
        f"no folder for compiled kernels: set XDG_CACHE_HOME to one that can be written (tried {home})"
    )


@lru_cache
def _tool() -> str:
    """Everything but the kernel text that decides what is compiled."""
    files = sorted([*HERE.glob("*.hpp"), HERE / "runtime.cpp", HERE / "compiler.py", HERE / "assembly.py"])
    return "\0".join([find_compiler(), _version(find_compiler()), *(f.read_text(encoding="utf-8") for f in files)])


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join([_tool(), *parts]).encode()).hexdigest()[:32]


def _run(*command: str | Path, what: str) -> str:
    done = subprocess.run([find_compiler(), *map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(f"{what} does not compile:\n{done.stderr}")
    return done.stdout


def _runtime(flags: Sequence[str]) -> Path:
    only = [*RUNTIME_DEFINES, *(flag for flag in flags if flag.startswith("-D"))]
    path = cache_folder() / f"{_key('runtime', *only)}.o"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
            made = Path(work) / "runtime.o"
            _run(*_COMMON, *only, "-c", HERE / "runtime.cpp", "-o", made, what="the emulator")
            made.replace(path)
    return path


def defines_of(options: Sequence[str]) -> list[str]:
    """Return the -D options; refuse what the emulator would not do as NVRTC does."""
    if not any(option in ("--fmad=false", "-fmad=false") for option in options):
        raise CompileError(
            f"options {tuple(options)!r} lack --fmad=false: a contracted kernel gives other bits than NumPy"
        )
    rest = [option for option in options if option not in ("--fmad=false", "-fmad=false")]
    unknown = [o for o in rest if not (re.match(r"-D\w", o) or _IGNORED_OPTIONS.fullmatch(o))]
    if unknown:
        raise CompileError(f"options {unknown!r}; the emulator knows -DNAME=VALUE, --fmad=false, -std=c++17, -lineinfo")
    return [option for option in rest if option.startswith("-D")]


def parameter_names(text: str, kernel: str) -> list[str]:
    """Return the names of a kernel's parameters, for messages; [] where they cannot be read."""
    found = re.search(rf"__global__[^;{{}}]*?\b{kernel}\s*\(([^)]*)\)", _COMMENT.sub(" ", text))
    names = [re.search(r"(\w+)\s*$", part) for part in found[1].split(",")] if found else []
    return [name[1] for name in names if name]


def _kernels(text: str, defines: Sequence[str], work: Path) -> dict[str, str]:
    """Kernels that the preprocessor leaves, with their largest block: names -> C expressions."""
    (work / "text.cpp").write_text(text, encoding="utf-8")
    # without the subset, its macros stay as they are
    done = _run("-E", *defines, work / "text.cpp", what="the kernel text")
    found = {}
    for before, after, name in _GLOBAL.findall(done):
        bounds = _BOUNDS.search(before + after)
        found[name] = bounds[1] if bounds else "0"
    return found


def _dynamic(found: re.Match[str]) -> str:
    lines = "\n" * found[0].count("\n")
    return f"{found[2]}* const {found[3]} = ({found[2]}*)emu_dynamic;{lines}"


def translate(text: str, kernels: dict[str, str]) -> str:
    """Return C++ text: the subset, the kernel text, the table of its kernels."""
    body = _DYNAMIC.sub(_dynamic, text)
    if _ANY_DYNAMIC.search(_COMMENT.sub(" ", body)):
        raise CompileError("write dynamic shared memory as: extern __shared__ unsigned char name[];")
    table = "".join(f'EmuCaller<&{name}>::entry("{name}", (int)({bound})), ' for name, bound in kernels.items())
    return (
        f'#include "cuda_subset.hpp"\n#line 1 "kernel.cu"\n{body}\n#line 1 "emulator"\n'
        f'extern "C" __attribute__((visibility("hidden"))) const EmuKernel emu_kernels[] = {{ {table} {{}} }};\n'
    )


def build(text: str, options: Sequence[str], arch: int, checked: bool) -> Path:
    """Return the library of a kernel text, compiled if the cache does not hold it."""
    defines = [*defines_of(options), f"-D__CUDA_ARCH__={arch}"]
    path = cache_folder() / f"{_key(text, *defines, str(checked), *RUNTIME_DEFINES)}.so"
    if path.exists():
        os.utime(path)
        return path
    mode = _CHECKED if checked else _PLAIN
    with tempfile.TemporaryDirectory(dir=cache_folder()) as name:
        work = Path(name)
        kernels = _kernels(text, ["-D__CUDACC__=1", *defines], work)
        source, assembly, library = work / "kernel.cpp", work / "kernel.s", work / "kernel.so"
        source.write_text(translate(text, kernels), encoding="utf-8")
        _run(*_COMMON, *_KERNEL, *mode, *defines, f"-I{HERE}", "-S", source, "-o", assembly, what="the kernel text")
        assembly.write_text(edit_assembly(assembly.read_text(), list(kernels), checked))
        objects = (_runtime(mode), assembly)
        _run("-shared", "-Wl,-Bsymbolic", *objects, "-lrt", "-o", library, what="the kernel text")
        library.replace(path)
    return path
