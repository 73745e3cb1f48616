"""The package's Python files, parsed once for all tests of its structure."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def called_name(call: ast.Call) -> str:
    """Return the last name of what is called: `import_module` of ``importlib.import_module(...)``."""
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
