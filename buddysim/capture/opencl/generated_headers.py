"""C++ headers that are written before the capture's libraries are compiled, so that each fact has one definition."""

from __future__ import annotations

from typing import Final

import numpy as np

from buddysim.importers.accelsim.opcodes import TIMINGS
from buddysim.trace import records

_LATENCIES: Final = ("integer", "single", "double", "special", "branch", "shared")
_SM_70: Final = TIMINGS[70]
_STRUCTS: Final = {
    "WarpOp": records.OP_DTYPE,
    "WarpRecord": records.WARP_DTYPE,
    "BlockRecord": records.BLOCK_DTYPE,
}
_TYPES: Final = {"u1": "uint8_t", "u2": "uint16_t", "u4": "uint32_t", "u8": "uint64_t"}


def headers() -> dict[str, str]:
    """The texts by file name."""
    return {"trace_records.h": _trace_records(), "latencies.h": _latencies()}


def _trace_records() -> str:
    """Kinds and flags of operations, and the structs of a trace's records."""
    lines = []
    for prefix, name in (("OP_", "OpKind"), ("FLAG_", "OpFlag")):
        values = {key: value for key, value in vars(records).items() if key.startswith(prefix) and type(value) is int}
        members = ", ".join(f"{key} = {value}" for key, value in values.items())
        lines.append(f"enum {name} : uint32_t {{ {members} }};")
    for name, dtype in _STRUCTS.items():
        lines += ["", *_struct(name, dtype)]
    return _text("buddysim/trace/records.py", lines)


def _latencies() -> str:
    """Core cycles of the execution units of sm_70."""
    values = ", ".join(f"{unit.upper()} = {getattr(_SM_70, unit)[0]}" for unit in _LATENCIES)
    return _text(f"buddysim/importers/accelsim/opcodes.py ({_SM_70.source})", [f"constexpr unsigned {values};"])


def _text(source: str, lines: list[str]) -> str:
    head = [f"// Written from {source}.", "#pragma once", "#include <cstdint>", "", "namespace capture {", ""]
    return "\n".join([*head, *lines, "", "}  // namespace capture", ""])


def _struct(name: str, dtype: np.dtype[np.void]) -> list[str]:
    lines = [f"struct {name} {{"]
    lines += [f"  {_TYPES[dtype[field].str[1:]]} {field};" for field in dtype.names or ()]
    return [*lines, "};", f'static_assert(sizeof({name}) == {dtype.itemsize}, "no padding");']
