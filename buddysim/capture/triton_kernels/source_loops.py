"""Counts the iterations of a kernel's loops while it is interpreted, by a change of its syntax tree."""

from __future__ import annotations

import ast
from typing import Final

from buddysim.capture.triton_kernels.ptx import Position

#: Names of the counting functions in the kernel's module, for the time of the capture.
COUNT_LOOP: Final = "_buddysim_count_loop"
COUNT_WHILE: Final = "_buddysim_count_while"


class LoopCounter(ast.NodeTransformer):
    """Lets each loop call the counting functions with its position.

    Parameters
    ----------
    file : of the kernel's source
    loops : receives the position of each loop, with its last line
    """

    def __init__(self, file: str, loops: dict[Position, int]) -> None:
        self._file = file
        self._loops = loops

    def visit_For(self, node: ast.For) -> ast.For:
        """Count the values that the loop takes."""
        self.generic_visit(node)
        node.iter = self._call(COUNT_LOOP, node.iter, node)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        """Count how often the condition holds."""
        self.generic_visit(node)
        node.test = self._call(COUNT_WHILE, node.test, node)
        return node

    def _call(self, name: str, argument: ast.expr, node: ast.For | ast.While) -> ast.Call:
        position = Position(self._file, node.lineno, node.col_offset + 1)
        self._loops[position] = node.end_lineno or node.lineno
        constants = [ast.Constant(value) for value in position]
        call = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[argument, *constants], keywords=[])
        return ast.copy_location(call, argument)
