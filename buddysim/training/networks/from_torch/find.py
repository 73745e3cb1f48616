"""Finds the PyTorch module that a user names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from buddysim.base.boundary import inside
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.paths import is_file

if TYPE_CHECKING:
    from torch import nn


def find_module(spec: str) -> nn.Module:
    """The module at ``file.py:name`` or ``package.module:name``: an instance, or what makes one without arguments.

    The file's code runs, as with ``python file.py``.
    """
    try:
        from torch import nn
    except ImportError:
        raise BuddysimError("a PyTorch module needs PyTorch: pip install 'buddysim[torch]'") from None
    source, colon, name = spec.rpartition(":")
    if not colon or not source or not name:
        raise BuddysimError(f"{shortened(spec)}: expected FILE.py:NAME or PACKAGE.MODULE:NAME")
    module = _imported(source)
    if not hasattr(module, name):
        raise BuddysimError(f"{spec}: {shortened(name)} isn't there{hint(name, _public(module))}")
    attribute: Any = getattr(module, name)
    if not isinstance(attribute, nn.Module) and callable(attribute):
        attribute = inside(attribute, lambda error: _refuse(f"{spec}: {name}() fails", error))
    if not isinstance(attribute, nn.Module):
        raise BuddysimError(f"{spec}: expected a torch.nn.Module or what makes one, found {type(attribute).__name__}")
    return attribute


def _imported(source: str) -> ModuleType:
    if not source.endswith(".py"):
        return inside(
            lambda: importlib.import_module(source), lambda error: _refuse(f"{source}: can't be imported", error)
        )
    path = Path(source)
    if not is_file(path):
        raise BuddysimError(f"{source}: no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BuddysimError(f"{source}: not a Python file")
    loader, module = spec.loader, importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        inside(lambda: loader.exec_module(module), lambda error: _refuse(f"{source}: its code fails", error))
    finally:
        sys.path.pop(0)
    return module


def _refuse(problem: str, error: BaseException) -> NoReturn:
    raise BuddysimError(f"{problem}: {_line(error)}") from None


def _public(module: ModuleType) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")]


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {shortened(text, 200)[1:-1]}" if text else type(error).__name__
