"""Compile a PoCL program into a library whose kernels log their accesses."""

from __future__ import annotations

from pathlib import Path

from buddysim.base.compiled import cached_file, run_compiler
from buddysim.base.errors import BuddysimError
from buddysim.capture.opencl.toolchain import CACHE, Toolchain, hooks_object, pass_plugin

_MAGIC = b"poclbin"
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
# A kernel may have the name of a function of the C library (`advance`): calls must stay in the program's library.
_LINKING = ("-shared", "-Wl,-Bsymbolic")
_FLAGS = ("-O2", "-fPIC", "-w", "-fno-vectorize", "-fno-slp-vectorize")
_AS_WRITTEN = ("-fno-unroll-loops",)
#: Loops are unrolled whole where they are short, else by eight, LLVM's default count.
_GPU_COMPILER_FLAGS = tuple(
    part
    for option in (
        "-unroll-allow-partial", "-unroll-runtime", "-unroll-threshold=500", "-unroll-partial-threshold=300",
    )
    for part in ("-mllvm", option)
)  # fmt: skip


def bitcode_of(binary: bytes) -> bytes:
    """Return the LLVM bitcode in a PoCL program binary: its file ``program.bc``."""
    if binary.startswith(_BITCODE):
        return binary
    name = b"/program.bc"
    at = binary.find(name)
    if not binary.startswith(_MAGIC) or at < 0:
        raise BuddysimError("its program is not in PoCL's form")
    start = at + len(name)
    n = int.from_bytes(binary[start : start + 4], "little")
    code = binary[start + 4 : start + 4 + n]
    if len(code) != n or not code.startswith(_BITCODE):
        raise BuddysimError("its program has no LLVM bitcode")
    return code


def compile_program(binary: bytes, toolchain: Toolchain, emulate_gpu_compiler: bool = False) -> Path:
    """Return the library of a program, from the cache if the same was compiled before.

    Parameters
    ----------
    binary : PoCL's program binary
    toolchain : compilers to use
    emulate_gpu_compiler : unroll loops and issue loads first, as a GPU's compiler does
    """
    code = bitcode_of(binary)
    plugin, hooks = pass_plugin(toolchain), hooks_object(toolchain)
    flags = (*_FLAGS, *(_GPU_COMPILER_FLAGS if emulate_gpu_compiler else _AS_WRITTEN))
    clang = (*(("env", "BUDDYSIM_CAPTURE_EMULATE_GPU_COMPILER=1") if emulate_gpu_compiler else ()), toolchain.clang)

    def make(target: Path) -> None:
        bitcode = target.with_suffix(".bc")
        bitcode.write_bytes(code)
        source = ["-x", "ir", str(bitcode), "-x", "none", str(hooks)]
        command = [*clang, *flags, f"-fpass-plugin={plugin}", *_LINKING, *source, "-lm", "-o", str(target)]
        error = run_compiler(command, target)
        if error is not None:
            raise BuddysimError(f"its program could not be compiled: {error}")

    key = [*clang, plugin.name, hooks.name, *flags, *_LINKING]
    return cached_file(f"{CACHE}/program", ".so", ["\0".join(key).encode(), code], make)
