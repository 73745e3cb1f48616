"""In which part of a training step memory was requested, as the stack of the request shows.

Stacks of Python, of C++ or both. Autograd runs in a thread of its own, whose requests have no Python frame.
"""

from __future__ import annotations

from typing import Any

_MAX_FRAMES = 400
_OPTIMIZER_FILES = ("/optim/", "/optimizers/", "optimizer.py", "optim.py")
_BACKWARD_NAMES = frozenset(("backward", "_engine_run_backward"))
_FORWARD_NAMES = frozenset(("forward", "_call_impl", "_wrapped_call_impl"))


def phase_of(frames: Any) -> str:
    """Return "setup", "forward", "backward" or "optimizer"; "" without a stack.

    An optimizer's file counts first, then autograd, then the call of a module; what is called by none is setup.
    """
    if not isinstance(frames, list) or not frames:
        return ""
    names, files = [], []
    for frame in frames[:_MAX_FRAMES]:
        if isinstance(frame, dict):
            names.append(str(frame["name"]) if isinstance(frame.get("name"), str) else "")
            files.append(str(frame["filename"]) if isinstance(frame.get("filename"), str) else "")
    if any(part in file for file in files for part in _OPTIMIZER_FILES):
        return "optimizer"
    if any("autograd::Engine" in name or "autograd::python::PythonEngine" in name for name in names):
        return "backward"
    if not _BACKWARD_NAMES.isdisjoint(names):
        return "backward"
    return "setup" if _FORWARD_NAMES.isdisjoint(names) else "forward"
