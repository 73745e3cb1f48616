"""The C and numpy definitions of trace records agree in fields, types, order, flags and kinds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from buddysim.trace import records

DECLARATIONS = (Path(records.__file__).with_suffix(".pxd")).read_text(encoding="utf-8")
DTYPES = {"WarpOp": records.OP_DTYPE, "WarpRecord": records.WARP_DTYPE, "BlockRecord": records.BLOCK_DTYPE}


def declared(kind: str, name: str) -> str:
    declaration = re.search(rf"^cdef {kind} {name}:\n((?:    .*\n|\n)+)", DECLARATIONS, re.MULTILINE)
    assert declaration, f"records.pxd declares no {kind} {name}"
    return declaration[1]


def test_every_struct_has_its_dtype() -> None:
    assert set(re.findall(r"^cdef struct (\w+):", DECLARATIONS, re.MULTILINE)) == set(DTYPES)


@pytest.mark.parametrize("name", DTYPES)
def test_structs_are_the_dtypes(name: str) -> None:
    fields = re.findall(r"^    (u?int\d+)_t (\w+)", declared("struct", name), re.MULTILINE)
    assert fields == [(dtype.name, field) for field, (dtype, _) in DTYPES[name].fields.items()]
    # C inserts no padding: every offset is a multiple of its field's size, and the total of the largest field's.
    for dtype, offset in DTYPES[name].fields.values():
        assert offset % dtype.itemsize == 0
    assert DTYPES[name].itemsize % max(dtype.itemsize for dtype, _ in DTYPES[name].fields.values()) == 0
    assert DTYPES[name].isnative
    assert DTYPES[name].itemsize == sum(np.dtype(kind).itemsize for kind, _ in fields)


@pytest.mark.parametrize(("enum", "prefix"), [("OpKind", "OP_"), ("OpFlag", "FLAG_")])
def test_kinds_and_flags_have_the_same_numbers(enum: str, prefix: str) -> None:
    numbers = {
        name: int(value) for name, value in re.findall(r"^    (\w+) = (\d+)", declared("enum", enum), re.MULTILINE)
    }
    assert numbers == {
        name: value for name, value in vars(records).items() if name.startswith(prefix) and isinstance(value, int)
    }
