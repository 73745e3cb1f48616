"""The package's Python files, parsed once for all tests of its structure."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    gc.freeze()  # trees are kept: two thirds of the time went into looking for cycles among them
    return tree


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return every node of a file's syntax tree."""
    return list(ast.walk(tree_of(path)))


def called_name(call: ast.Call) -> str:
    """Return the last name of what is called: `import_module` of ``importlib.import_module(...)``."""
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
