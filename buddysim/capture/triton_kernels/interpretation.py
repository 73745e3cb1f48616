"""Runs launches in Triton's interpreter and hands over the accesses, loops and values of each program instance.

Without TRITON_INTERPRET: a launch is interpreted, and the same function can still be compiled. Functions that a kernel
calls are interpreted while the kernel is, and restored after each call.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buddysim.capture.triton_kernels.device_functions import interpreted_functions
from buddysim.capture.triton_kernels.program_processes import FEWEST_PROGRAMS, interpret_in_processes
from buddysim.capture.triton_kernels.ptx import Position
from buddysim.capture.triton_kernels.source_loops import COUNT_LOOP, COUNT_WHILE, LoopCounter
from buddysim.capture.triton_kernels.stand_in_driver import StandInDriver

#: Addresses, values and mask.
_Store = tuple[npt.NDArray[np.uint64], npt.NDArray[Any], npt.NDArray[np.bool_]]


@dataclass
class InterpretedProgram:
    """Accesses of a program instance, in order.

    Attributes
    ----------
    block : its number, x fastest
    positions : in the source, of each access
    addresses : of each access, flattened
    masks : of each access, flattened; None: all elements
    loops : iterations of each run through a loop, by the loop's position
    """

    block: int
    positions: list[Position] = field(default_factory=list)
    addresses: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    masks: list[npt.NDArray[np.bool_] | None] = field(default_factory=list)
    loops: dict[Position, list[int]] = field(default_factory=dict)


@dataclass
class _InterpretedGroup:
    """Programs of another process: those that are recorded, stores of all of them, and loops of the source."""

    programs: list[InterpretedProgram]
    stores: list[_Store]
    source_loops: dict[Position, int]


class Interpreter:
    """Interprets launches. While it is installed, a launch of any kernel calls `on_launch`.

    Parameters
    ----------
    on_launch : called with the function, its arguments, named arguments and grid
    """

    def __init__(self, on_launch: Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]) -> None:
        self._on_launch = on_launch
        self._program: InterpretedProgram | None = None
        self._stores: list[_Store] | None = None
        self._triton = str(Path(sys.modules["triton"].__file__ or "").parent)
        self._positions: dict[tuple[Any, int], Position] = {}
        self._while_counts: dict[Position, int] = {}
        self._globals: list[dict[str, Any]] = []
        self.source_loops: dict[Position, int] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Interpret all launches of the process."""
        from triton.runtime import driver, interpreter
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        builder = interpreter.InterpreterBuilder
        patched: list[tuple[Any, str, Any]] = []

        def patch(owner: Any, name: str, value: Any) -> None:
            patched.append((owner, name, owner.__dict__.get(name)))
            setattr(owner, name, value)

        load, store = builder.create_masked_load, builder.create_masked_store
        rmw, cas = builder.create_atomic_rmw, builder.create_atomic_cas
        prune = Autotuner.prune_configs
        note = self._note

        def masked_load(this: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
            note(ptrs, mask)
            return load(this, ptrs, mask, *rest, **named)

        def masked_store(this: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
            note(ptrs, mask)
            if self._stores is not None:
                self._stores.append((ptrs.data, value.data, mask.data))
            return store(this, ptrs, value, mask, *rest, **named)

        def atomic_rmw(this: Any, operation: Any, ptr: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
            note(ptr, mask)
            return rmw(this, operation, ptr, value, mask, *rest, **named)

        def atomic_cas(this: Any, ptr: Any, *rest: Any, **named: Any) -> Any:
            note(ptr, None)
            return cas(this, ptr, *rest, **named)

        def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
            if not warmup:
                self._on_launch(function, args, kwargs, grid)

        patch(builder, "create_masked_load", masked_load)
        patch(builder, "create_masked_store", masked_store)
        patch(builder, "create_atomic_rmw", atomic_rmw)
        patch(builder, "create_atomic_cas", atomic_cas)
        patch(JITFunction, "run", run)
        patch(JITFunction, "__call__", _call_interpreted)
        patch(Autotuner, "prune_configs", lambda this, kwargs: prune(this, kwargs)[:1])
        rewriter = interpreter.FunctionRewriter
        patch(rewriter, "_transform_ast", self._transform(rewriter._transform_ast))
        interpreter.InterpretedFunction.rewritten_fn.clear()
        before = driver._active  # None where nothing requested a GPU: the property would look for one
        driver.set_active(StandInDriver())
        try:
            yield
        finally:
            driver.set_active(before)
            interpreter.InterpretedFunction.rewritten_fn.clear()
            for names in self._globals:
                names.pop(COUNT_LOOP, None)
                names.pop(COUNT_WHILE, None)
            for owner, name, value in reversed(patched):
                delattr(owner, name) if value is None else setattr(owner, name, value)

    def run(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grid: tuple[int, int, int],
        is_recorded: Callable[[int], bool],
        progress: Callable[[int], object],
        workers: int = 1,
    ) -> Iterator[InterpretedProgram]:
        """Interpret a launch, program by program with x fastest, and yield those that are is_recorded.

        Parameters
        ----------
        function : a `JITFunction`
        args, kwargs : of the launch
        grid : program instances in x, y and z
        is_recorded : whether a program's accesses are recorded, by its number
        progress : called with the number of a program before it runs
        workers : processes that interpret programs
        """
        from triton.runtime import interpreter

        interpreted = interpreter.InterpretedFunction(function.fn)
        rewritten = interpreted.rewrite()
        executor = interpreter.GridExecutor(rewritten, interpreted.arg_names, grid, function.pre_run_hooks)
        known = inspect.getfullargspec(rewritten)
        named = {name: value for name, value in kwargs.items() if name in known.args or name in known.kwonlyargs}
        for hook in executor.pre_run_hooks:
            hook(*args, **named)
        scope = interpreter._patch_lang(rewritten)
        builder = interpreter.interpreter_builder
        options, builder.options = builder.options, _without_checks(builder.options)
        try:
            bound = inspect.getcallargs(rewritten, *args, **named)
            bound = {
                name: value if name in executor.constexprs else interpreter._implicit_cvt(value)
                for name, value in bound.items()
            }
            builder.set_grid_dim(*grid)

            def interpret(number: int) -> InterpretedProgram | None:
                builder.set_grid_idx(number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1]))
                self._program = program = InterpretedProgram(number) if is_recorded(number) else None
                with interpreted_functions():
                    rewritten(**bound)
                self._program = None
                return program

            count = grid[0] * grid[1] * grid[2]
            if workers > 1 and count >= FEWEST_PROGRAMS:
                yield from self._run_in_processes(interpret, count, workers, progress)
                return
            for number in range(count):
                progress(number)
                program = interpret(number)
                if program is not None:
                    yield program
        finally:
            self._program = None
            builder.options = options
            scope.restore()

    def _run_in_processes(
        self,
        interpret: Callable[[int], InterpretedProgram | None],
        count: int,
        workers: int,
        progress: Callable[[int], object],
    ) -> Iterator[InterpretedProgram]:
        from triton.runtime import interpreter

        def interpret_group(numbers: range) -> _InterpretedGroup:
            self._stores = []
            programs = [program for program in map(interpret, numbers) if program is not None]
            return _InterpretedGroup(programs, self._stores, self.source_loops)

        for numbers, group in interpret_in_processes(interpret_group, count, workers):
            progress(numbers[-1])
            for addresses, values, mask in group.stores:
                interpreter._interpreter.store(addresses, values, mask)
            self.source_loops.update(group.source_loops)
            yield from group.programs

    # -- what the interpreter calls -----------------------------------------------------------------------------------

    def _note(self, pointers: Any, mask: Any) -> None:
        program = self._program
        if program is None:
            return
        addresses = pointers.data
        active = None
        if mask is not None:
            active = np.broadcast_to(mask.data, addresses.shape).reshape(-1)
        program.positions.append(self._position())
        program.addresses.append(addresses.reshape(-1))
        program.masks.append(active)

    def _position(self) -> Position:
        """Return the position of the running call in the kernel: the first frame outside of Triton."""
        frame: Any = sys._getframe(3)
        while frame is not None and frame.f_code.co_filename.startswith(self._triton):
            frame = frame.f_back
        if frame is None:
            return Position("", 0, 0)
        key = frame.f_code, frame.f_lasti
        position = self._positions.get(key)
        if position is None:
            line, _, column, _ = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            file = frame.f_code.co_filename
            position = Position(file, line or 0, (column or 0) + 1)
            self._positions[key] = position
        return position

    def count_loop(self, iterable: Iterable[Any], file: str, line: int, column: int) -> Iterator[Any]:
        """Yield the values of a ``for`` loop, and record their number."""
        count = 0
        try:
            for value in iterable:
                count += 1
                yield value
        finally:
            self._end_loop(Position(file, line, column), count)

    def count_while(self, condition: Any, file: str, line: int, column: int) -> bool:
        """Return whether the condition of a ``while`` loop holds; the loop ends when it doesn't."""
        position = Position(file, line, column)
        holds = bool(condition)
        if holds:
            self._while_counts[position] = self._while_counts.get(position, 0) + 1
        else:
            self._end_loop(position, self._while_counts.pop(position, 0))
        return holds

    def _end_loop(self, position: Position, count: int) -> None:
        if self._program is not None:
            self._program.loops.setdefault(position, []).append(count)

    def _transform(self, original: Callable[[Any, str], ast.Module]) -> Callable[[Any, str], ast.Module]:
        """Return Triton's transformation of a kernel's source, with counted loops and columns as in the file."""

        def transform(rewriter: Any, source: str) -> ast.Module:
            from triton.runtime.jit import JITFunction

            tree = original(rewriter, source)
            indent = JITFunction(rewriter.fn).def_file_col_number - 1
            for node in ast.walk(tree):
                for name in ("col_offset", "end_col_offset"):
                    if getattr(node, name, None) is not None:
                        setattr(node, name, getattr(node, name) + indent)
            names = rewriter.fn.__globals__
            names[COUNT_LOOP], names[COUNT_WHILE] = self.count_loop, self.count_while
            self._globals.append(names)
            counted: ast.Module = LoopCounter(rewriter.filename, self.source_loops).visit(tree)
            return ast.fix_missing_locations(counted)

        return transform


def _without_checks(options: Any) -> Any:
    """Return the interpreter's options without its search for overflows, which takes a third of the time."""
    return replace(options, sanitize_overflow=False)


def _call_interpreted(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function of Triton from an interpreted kernel."""
    from triton.runtime import interpreter

    interpreted = interpreter.InterpretedFunction(function.fn)
    scope = interpreter._patch_lang(function.fn)
    try:
        return interpreted.rewrite()(*args, **kwargs)
    finally:
        scope.restore()
