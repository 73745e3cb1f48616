"""A program of PoCL's -> a library with its kernels, which log what they do."""

from __future__ import annotations

from pathlib import Path

from buddysim.base.compiled import kept, run_compiler
from buddysim.base.errors import BuddysimError
from buddysim.capture.opencl.toolchain import CACHE, Toolchain, hooks_object, pass_plugin

_MAGIC = b"poclbin"
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
# A kernel may have the name of a function of the C library (`advance`): calls must stay in the program's library.
_LINKING = ("-shared", "-Wl,-Bsymbolic")
_FLAGS = ("-O2", "-fPIC", "-w", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops")


def bitcode_of(binary: bytes) -> bytes:
    """The LLVM bitcode in one of PoCL's program binaries: its file ``program.bc``."""
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


def compiled(binary: bytes, toolchain: Toolchain) -> Path:
    """The library of a program, from the cache if the same was compiled before."""
    code = bitcode_of(binary)
    plugin, hooks = pass_plugin(toolchain), hooks_object(toolchain)

    def make(target: Path) -> None:
        bitcode = target.with_suffix(".bc")
        bitcode.write_bytes(code)
        source = ["-x", "ir", str(bitcode), "-x", "none", str(hooks)]
        command = [toolchain.clang, *_FLAGS, f"-fpass-plugin={plugin}", *_LINKING, *source, "-lm", "-o", str(target)]
        error = run_compiler(command, target)
        if error is not None:
            raise BuddysimError(f"its program could not be compiled: {error}")

    key = [toolchain.clang, plugin.name, hooks.name, *_FLAGS, *_LINKING]
    return kept(f"{CACHE}/program", ".so", ["\0".join(key).encode(), code], make)
