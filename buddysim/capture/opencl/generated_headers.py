"""C++ headers that are written before the capture's libraries are compiled, so that each fact has one definition."""

from __future__ import annotations

from typing import Final

import numpy as np

from buddysim.importers.accelsim.opcodes import TIMINGS, Unit
from buddysim.trace import records

#: Execution units that captured instructions keep busy.
UNITS: Final = (Unit.INTEGER, Unit.SINGLE, Unit.DOUBLE, Unit.SPECIAL, Unit.BRANCH, Unit.SHARED)
_SM_70: Final = TIMINGS[70]
_STRUCTS: Final = {
    "WarpOp": records.OP_DTYPE,
    "WarpRecord": records.WARP_DTYPE,
    "BlockRecord": records.BLOCK_DTYPE,
}
_TYPES: Final = {"u1": "uint8_t", "u2": "uint16_t", "u4": "uint32_t", "u8": "uint64_t"}


def headers() -> dict[str, str]:
    """Return the headers' texts by file name."""
    return {"trace_records.h": _trace_records(), "units.h": _units()}


def _trace_records() -> str:
    """Return the kinds and flags of operations, and the structs of a trace's records."""
    lines = []
    for prefix, name in (("OP_", "OpKind"), ("FLAG_", "OpFlag")):
        values = {key: value for key, value in vars(records).items() if key.startswith(prefix) and type(value) is int}
        members = ", ".join(f"{key} = {value}" for key, value in values.items())
        lines.append(f"enum {name} : uint32_t {{ {members} }};")
    for name in ("ATOMIC_CONFLICTS_SHIFT", "BANK_WORDS_SHIFT"):
        lines.append(f"constexpr uint32_t {name} = {getattr(records, name)};")
    for name, dtype in _STRUCTS.items():
        lines += ["", *_struct(name, dtype)]
    return _text("buddysim/trace/records.py", lines)


def _units() -> str:
    """Return the execution units of sm_70: latency and initiation interval, in cycles."""
    timings = [_SM_70.latency_and_interval(unit) for unit in UNITS]
    factors = [_SM_70.schedulers if unit == Unit.SHARED else 1 for unit in UNITS]
    latencies = ", ".join(str(latency) for latency, _ in timings)
    cycles = ", ".join(str(interval * factor) for (_, interval), factor in zip(timings, factors, strict=True))
    return _text(
        f"buddysim/importers/accelsim/opcodes.py ({_SM_70.source})",
        [
            f"enum Unit : uint32_t {{ {', '.join(unit.name for unit in UNITS)}, N_UNITS }};",
            f"constexpr uint32_t LATENCY[] = {{{latencies}}};  // core cycles",
            f"constexpr uint32_t UNIT_CYCLES[] = {{{cycles}}};  // of a scheduler, for an instruction",
        ],
    )


def _text(source: str, lines: list[str]) -> str:
    head = [f"// Written from {source}.", "#pragma once", "#include <cstdint>", "", "namespace capture {", ""]
    return "\n".join([*head, *lines, "", "}  // namespace capture", ""])


def _struct(name: str, dtype: np.dtype[np.void]) -> list[str]:
    lines = [f"struct {name} {{"]
    lines += [f"  {_TYPES[dtype[field].str[1:]]} {field};" for field in dtype.names or ()]
    return [*lines, "};", f'static_assert(sizeof({name}) == {dtype.itemsize}, "no padding");']
