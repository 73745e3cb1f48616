"""Memory over time of the schemes in a timeline that `train --timeline FILE.json` wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.saved_results import MAX_FILE_BYTES
from buddysim.base.schema import Schema, checked
from buddysim.base.textfile import LARGEST_NUMBER, read_json
from buddysim.figures.shared.result_source import displayable
from buddysim.plotting.memory_kinds import COUNTER, PEAK

_US_PER_MS = 1000
Amount = Annotated[float, Field(ge=0, le=LARGEST_NUMBER)]


class _TimelinePart(Schema):
    """A part of an event, which may have more keys."""

    model_config = ConfigDict(extra="ignore")


class _TimelineEvent(_TimelinePart):
    name: str
    ph: str
    pid: int


class _NameArgument(_TimelinePart):
    name: str


class _ProcessName(_TimelineEvent):
    args: _NameArgument


class _MemoryStep(_TimelineEvent):
    ts: Amount
    args: dict[str, Amount]


class _PeakArguments(_TimelinePart):
    bytes: Amount
    phase: str
    module: str | None
    operation: str | None


class _PeakMark(_TimelineEvent):
    ts: Amount
    args: _PeakArguments


class _TimelineSpan(_TimelineEvent):
    ts: Amount
    dur: Amount


@dataclass
class MemoryOfScheme:
    """The memory of one scheme.

    Attributes
    ----------
    title : scheme, network, batch and machine
    times_ms : start of each step
    end_ms : end of the iteration
    bytes_by_kind : by the kind's name, bytes of each step
    peak_ms : time of the peak; None without one
    peak_bytes : bytes at the peak
    peak_text : phase, module and operation at the peak
    """

    title: str
    times_ms: list[float] = field(default_factory=list)
    end_ms: float = 0.0
    bytes_by_kind: dict[str, list[float]] = field(default_factory=dict)
    peak_ms: float | None = None
    peak_bytes: float = 0
    peak_text: str = ""


@within_budget
def read_memory(path: Path) -> list[MemoryOfScheme]:
    """Return the memory of each scheme of a timeline, in their order.

    Raises
    ------
    BuddysimError
        where it can't be read, or an event isn't what such a file has
    """
    content = read_json(path, "timeline", MAX_FILE_BYTES)
    events = content.get("traceEvents") if isinstance(content, dict) else None
    if not isinstance(events, list):
        raise BuddysimError(f"{path}: not a timeline as 'train --timeline FILE.json' writes it")
    schemes: dict[int, MemoryOfScheme] = {}
    for index, event in enumerate(events):
        where = f"{path}: traceEvents.{index}"
        seen = checked(_TimelineEvent, event, where)
        if seen.name == "process_name":
            schemes[seen.pid] = MemoryOfScheme(displayable(checked(_ProcessName, event, where).args.name))
        elif seen.pid not in schemes:
            raise BuddysimError(f"{where}: pid: expected that of an event 'process_name' before it, got {seen.pid}")
        else:
            _add(schemes[seen.pid], seen, event, where)
    return list(schemes.values())


def _add(scheme: MemoryOfScheme, seen: _TimelineEvent, event: Any, where: str) -> None:
    """Add what an event says of its scheme."""
    if seen.name == COUNTER:
        _add_step(scheme, checked(_MemoryStep, event, where), where)
    elif seen.name == PEAK:
        peak = checked(_PeakMark, event, where)
        module_text = ", ".join(filter(None, (peak.args.module, peak.args.operation)))
        scheme.peak_ms, scheme.peak_bytes = peak.ts / _US_PER_MS, peak.args.bytes
        scheme.peak_text = displayable(f"{peak.args.phase} of {module_text}")
    elif seen.ph == "X":
        span = checked(_TimelineSpan, event, where)
        scheme.end_ms = max(scheme.end_ms, (span.ts + span.dur) / _US_PER_MS)


def _add_step(scheme: MemoryOfScheme, step: _MemoryStep, where: str) -> None:
    amounts = {displayable(kind): amount for kind, amount in step.args.items()}
    if not scheme.times_ms:
        scheme.bytes_by_kind = {kind: [] for kind in amounts}
    if amounts.keys() != scheme.bytes_by_kind.keys():
        raise BuddysimError(f"{where}: args: expected the kinds of the events before it")
    scheme.times_ms.append(step.ts / _US_PER_MS)
    for kind, amount in amounts.items():
        scheme.bytes_by_kind[kind].append(amount)
