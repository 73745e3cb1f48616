"""Compiles a launch's kernel for a GPU as Triton does: arguments specialised, layouts, PTX and machine code."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from buddysim.base.errors import BuddysimError
from buddysim.base.output import write_text
from buddysim.capture.triton_kernels.layouts import AccessLayout, LayoutReader
from buddysim.capture.triton_kernels.ptx import Position, PtxAccess, number_lines, read_ptx
from buddysim.capture.triton_kernels.sass import Sass, read_sass

_REGISTERS: Final = re.compile(r"\bREG:(\d+)")
_TIMEOUT_S: Final = 600


@dataclass(frozen=True)
class CompiledAccess:
    """An operation of the compiled kernel that accesses global memory, and its instructions in the PTX.

    Attributes
    ----------
    layout : of its tensor of pointers
    lines : of the PTX, one for each instruction of a thread
    bytes_per_lane : moved by each lane in one instruction
    """

    layout: AccessLayout
    lines: tuple[int, ...]
    bytes_per_lane: int

    @property
    def per_instruction(self) -> int:
        """Elements that a lane accesses in one instruction."""
        return max(1, self.bytes_per_lane // self.layout.element_bytes)


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel compiled for the arguments of a launch.

    Attributes
    ----------
    name : of the function
    warps : of a program
    shared_bytes : shared memory of a program
    registers : of a thread
    accesses : in the order of the compiled kernel
    positions : source position of each line of the PTX
    sass : machine code
    """

    name: str
    warps: int
    shared_bytes: int
    registers: int
    accesses: tuple[CompiledAccess, ...]
    positions: tuple[Position | None, ...]
    sass: Sass


class KernelCompiler:
    """Compiles kernels for one GPU, each set of specialised arguments once.

    Parameters
    ----------
    architecture : of the GPU: 80, 90, 100, ..
    """

    def __init__(self, architecture: int) -> None:
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend

        self._target = GPUTarget("cuda", architecture, 32)
        self._backend = make_backend(self._target)
        self._layouts = LayoutReader()
        self._kernels: dict[Any, CompiledKernel] = {}
        self._binders: dict[int, Any] = {}

    def bind(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return a launch's arguments by name, and the key of their specialisation.

        Parameters
        ----------
        function : a `JITFunction`
        args, kwargs : of the launch; tensors are specialised by their addresses
        """
        from triton.runtime.jit import create_function_from_signature

        binder = self._binders.get(id(function))
        if binder is None:
            binder = create_function_from_signature(function.signature, function.params, self._backend)
            self._binders[id(function)] = binder
        bound, specialization, options = binder(*args, **kwargs)
        return bound, (id(function), str(specialization), str(sorted(options.items(), key=str)))

    def compile(self, function: Any, bound: dict[str, Any], key: Any, kwargs: dict[str, Any]) -> CompiledKernel:
        """Compile a kernel for a specialisation, or return it if it was compiled before."""
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = self._compile(function, bound, kwargs)
        return kernel

    def close(self) -> None:
        """End the process that reads layouts."""
        self._layouts.close()

    def _compile(self, function: Any, bound: dict[str, Any], kwargs: dict[str, Any]) -> CompiledKernel:
        import triton
        from triton.compiler.compiler import ASTSource
        from triton.runtime.jit import create_function_from_signature

        compilation = import_module("triton.knobs").compilation
        binder = self._binders.get(id(function)) or create_function_from_signature(
            function.signature, function.params, self._backend
        )
        _, specialization, options = binder(**bound, **_options_in(kwargs, bound))
        options = dict(options, debug=False)
        parsed, signature, constants, attributes = function._pack_args(
            self._backend, options, bound, specialization, options
        )
        source = ASTSource(function, signature, constants, attributes)
        try:
            # Triton's cache doesn't tell files with the same source apart, whose names are in the code's positions.
            with compilation.scope():
                compilation.always_compile = True
                compiled = triton.compile(source, target=self._target, options=parsed.__dict__)
        except Exception as error:
            raise BuddysimError(
                f"capture triton: {function.__name__} doesn't compile for sm_{self._target.arch}: {error}"
            ) from error
        metadata = compiled.metadata
        if metadata.num_ctas != 1:
            raise BuddysimError(
                f"capture triton: {function.__name__}: num_ctas is {metadata.num_ctas}: expected 1, clusters of thread "
                "blocks are not supported"
            )
        text = compiled.asm["ptx"]
        ptx = read_ptx(text)
        with tempfile.TemporaryDirectory(prefix="buddysim-") as folder:
            ttgir = Path(folder, f"{metadata.name}.ttgir")
            write_text(ttgir, compiled.asm["ttgir"])
            layouts = self._layouts.read(ttgir, compiled.asm["ttgir"])
            sass, registers = self._assemble(Path(folder), text, metadata.name, parsed)
        return CompiledKernel(
            metadata.name,
            metadata.num_warps,
            metadata.shared,
            registers,
            tuple(_match(layouts, ptx.accesses)),
            ptx.positions,
            sass,
        )

    def _assemble(self, folder: Path, ptx: str, name: str, options: Any) -> tuple[Sass, int]:
        """Assemble PTX with numbered lines, with Triton's own options; return machine code and registers."""
        from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

        source, cubin = folder / "kernel.ptx", folder / "kernel.cubin"
        write_text(source, number_lines(ptx))
        ptxas = get_ptxas(self._target.arch).path
        command = [ptxas, "-lineinfo", "--regAllocOptLevel=2"]
        command += [] if options.enable_fp_fusion else ["--fmad=false"]
        command += options.ptx_options.split() if options.ptx_options else []
        command += [f"--gpu-name={sm_arch_from_capability(self._target.arch)}", str(source), "-o", str(cubin)]
        _tool(command, name)
        listing = _tool([str(Path(ptxas).with_name("nvdisasm")), "-c", "-g", str(cubin)], name)
        usage = _tool([str(Path(ptxas).with_name("cuobjdump")), "-res-usage", str(cubin)], name)
        match = _REGISTERS.search(usage.partition(f"Function {name}")[2])
        return read_sass(listing, name), int(match[1]) if match else 0


def _options_in(kwargs: dict[str, Any], bound: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name not in bound}


def _tool(command: list[str], kernel: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuddysimError(f"capture triton: {kernel}: {command[0]}: {error}") from None
    if done.returncode:
        raise BuddysimError(f"capture triton: {kernel}: {Path(command[0]).name} failed: {done.stderr.strip()[:300]}")
    return done.stdout


def _match(layouts: list[AccessLayout], accesses: tuple[PtxAccess, ...]) -> list[CompiledAccess]:
    """Give each operation its instructions: both are in order, position by position.

    LLVM may have copied an operation, with its loop: then there are more instructions, in groups of as many. It may
    have removed some whose mask is never true: then the last group has fewer (`LaunchRecords` finds out which).
    """
    instructions: dict[tuple[Position, str], list[PtxAccess]] = defaultdict(list)
    for access in accesses:
        instructions[access.position, access.kind].append(access)
    operations: dict[tuple[Position, str], list[AccessLayout]] = defaultdict(list)
    for layout in layouts:
        if layout.position is not None:
            operations[layout.position, layout.kind].append(layout)
    result = []
    for key, group in operations.items():
        left = instructions.get(key, [])
        of_copy = max(1, len(left) // len(group))
        number = 0
        while left:
            layout = group[min(number, len(group) - 1)]
            count = of_copy if layout.kind in ("tensor_load", "tensor_store") else _instructions_of(layout, left[0])
            result.append(CompiledAccess(layout, tuple(each.line for each in left[:count]), left[0].bytes_per_lane))
            left = left[count:]
            number += 1
    return sorted(result, key=lambda access: access.lines[0])


def _instructions_of(layout: AccessLayout, first: PtxAccess) -> int:
    """Return how many instructions a thread has for an operation."""
    elements = max(1, first.bytes_per_lane // layout.element_bytes)
    return max(1, layout.registers() // elements) if layout.shape else 1
