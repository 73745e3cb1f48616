"""In which part of a training step memory was requested, as the stack of the request shows.

Stacks of Python, of C++ or both. Autograd runs in a thread of its own, whose requests have no Python frame.
"""

from __future__ import annotations

from typing import Any

_MAX_FRAMES = 400
_OPTIMIZER_FILES = ("/optim/", "/optimizers/", "optimizer.py", "optim.py")
_AUTOGRAD_NAMES = ("autograd::Engine", "autograd::python::PythonEngine")
_BACKWARD_NAMES = frozenset(("backward", "_engine_run_backward"))
_FORWARD_NAMES = frozenset(("forward", "_call_impl", "_wrapped_call_impl"))


class PhaseReader:
    """Reads phases of stacks; a stack, and a text in it, that occurs again in the same file is read once."""

    def __init__(self) -> None:
        self._of_stack: dict[int, str] = {}
        self._is_optimizer: dict[str, bool] = {}
        self._is_autograd: dict[str, bool] = {}

    def phase_of(self, frames: Any) -> str:
        """Return "setup", "forward", "backward" or "optimizer"; "" without a stack.

        Parameters
        ----------
        frames : of a stack, which lives as long as this reader: it is known by its identity
        """
        if not isinstance(frames, list) or not frames:
            return ""
        if id(frames) not in self._of_stack:
            self._of_stack[id(frames)] = self._read(frames)
        return self._of_stack[id(frames)]

    def _read(self, frames: list[Any]) -> str:
        """An optimizer's file counts first, then autograd, then the call of a module; what none calls is setup."""
        names, files = set[str](), set[str]()
        for frame in frames[:_MAX_FRAMES]:
            if isinstance(frame, dict):
                names.update(name for name in [frame.get("name")] if isinstance(name, str))
                files.update(file for file in [frame.get("filename")] if isinstance(file, str))
        if any(self._has(self._is_optimizer, file, _OPTIMIZER_FILES) for file in files):
            return "optimizer"
        if any(self._has(self._is_autograd, name, _AUTOGRAD_NAMES) for name in names):
            return "backward"
        if not _BACKWARD_NAMES.isdisjoint(names):
            return "backward"
        return "setup" if _FORWARD_NAMES.isdisjoint(names) else "forward"

    @staticmethod
    def _has(known: dict[str, bool], text: str, parts: tuple[str, ...]) -> bool:
        if text not in known:
            known[text] = any(part in text for part in parts)
        return known[text]
