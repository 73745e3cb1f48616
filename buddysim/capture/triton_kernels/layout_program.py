"""Prints the layouts of a kernel's accesses as JSON: ``layout_program.py`` reads paths of TTGIR files, one a line.

This runs in a process of its own. The objects of Triton's compiler end a process that lets go of them in the wrong
order, and they report themselves when it ends.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

ACCESSES = {
    "tt.load": "load",
    "tt.store": "store",
    "tt.atomic_rmw": "atomic",
    "tt.atomic_cas": "atomic",
    "ttg.async_copy_global_to_local": "async_copy",
    "ttng.async_tma_copy_global_to_local": "tensor_load",
    "ttng.async_tma_copy_local_to_global": "tensor_store",
}
_SHAPE = re.compile(r"(?:tensor|!tt\.tensordesc)<((?:\d+x)+)")
_POINTEE = re.compile(r"!tt\.ptr<(?P<type>!tt\.ptr|[a-z]+\d+)")
_ELEMENT = re.compile(r"<(?:\d+x)+(?P<type>[a-z]+\d+)")


def layouts_of(path: str) -> list[dict[str, Any]]:
    """Return kind, shape and bases of each access, in the order of the text."""
    from triton._C.libtriton import gluon_ir, ir, nvidia

    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    module = ir.parse_mlir_module(path, context)
    module.context = context
    builder = gluon_ir.GluonOpBuilder(context)
    accesses: list[dict[str, Any]] = []

    def visit(operation: Any) -> None:
        kind = ACCESSES.get(operation.get_name())
        if kind is None:
            return
        text = str(operation.get_operand(0).get_type())
        match = _SHAPE.match(text)
        shape = [int(extent) for extent in match[1].split("x")[:-1]] if match else []
        access: dict[str, Any] = {"kind": kind, "shape": shape, "bytes": element_bytes(text)}
        if shape and kind in ("load", "store", "atomic", "async_copy"):
            layout = builder.get_gluon_layout_from_tensor(operation.get_operand(0))
            linear = builder.to_linear_layout(layout._to_ir(builder), shape)
            access |= {"registers": linear.reg_bases, "lanes": linear.lane_bases, "warps": linear.warp_bases}
        accesses.append(access)

    module.walk(visit)
    return accesses


def element_bytes(text: str) -> int:
    """Return the bytes of an element by the type of its pointer or descriptor."""
    match = _POINTEE.search(text) or _ELEMENT.search(text)
    if match is None or match["type"].startswith("!"):
        return 8
    return max(8, int(re.sub(r"[a-z]", "", match["type"]))) // 8


def main() -> int:
    """Answer lines until there are none; end the process without Triton's clean-up."""
    for line in sys.stdin:
        try:
            answer: Any = layouts_of(line.rstrip("\n"))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    os._exit(0)


if __name__ == "__main__":
    del sys.path[0]  # this folder's module names are not for import without their package
    sys.path.append(str(Path(__file__).parents[3]))
    from buddysim.base.boundary import run_program

    sys.exit(run_program(main))
