"""The C++ header of a trace's records, written from their numpy dtypes before the OpenCL runtime is compiled."""

from __future__ import annotations

from typing import Final

import numpy as np

from buddysim.trace import records

NAME: Final = "trace_records.h"

_STRUCTS: Final = {
    "WarpOp": records.OP_DTYPE,
    "WarpRecord": records.WARP_DTYPE,
    "BlockRecord": records.BLOCK_DTYPE,
}
_TYPES: Final = {"u1": "uint8_t", "u2": "uint16_t", "u4": "uint32_t", "u8": "uint64_t"}


def header() -> str:
    """The text of the header: kinds and flags of operations, and the structs."""
    lines = ["// Written from buddysim/trace/records.py.", "#pragma once", "#include <cstdint>"]
    lines += ["", "namespace capture {", ""]
    for prefix, name in (("OP_", "OpKind"), ("FLAG_", "OpFlag")):
        values = {key: value for key, value in vars(records).items() if key.startswith(prefix) and type(value) is int}
        members = ", ".join(f"{key} = {value}" for key, value in values.items())
        lines.append(f"enum {name} : uint32_t {{ {members} }};")
    for name, dtype in _STRUCTS.items():
        lines += ["", *_struct(name, dtype)]
    return "\n".join([*lines, "", "}  // namespace capture", ""])


def _struct(name: str, dtype: np.dtype[np.void]) -> list[str]:
    lines = [f"struct {name} {{"]
    lines += [f"  {_TYPES[dtype[field].str[1:]]} {field};" for field in dtype.names or ()]
    return [*lines, "};", f'static_assert(sizeof({name}) == {dtype.itemsize}, "no padding");']
