"""What holds the GPU's memory at the peak, as a table of at most twelve rows, and when the peak is reached by what.

Every number of bytes is in one row: what has no row of its own is in `others`. So the rows add up to the total.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from buddysim.plotting.memory_kinds import LABELS, NOT_TENSORS, SAVED, label_of
from buddysim.report.quantities import format_gib, format_percent_number, format_significant
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.training.autograd.blocks import is_block

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]
#: A label and its bytes, by scheme.
MemoryRow = tuple[str, Sequence[int]]

MAX_ROWS = 12
#: More schemes have no column each.
MAX_SCHEMES = 4
#: Longer names of schemes have two lines.
_WIDE = 12
#: Of rows that are shortened first.
_SAVED_BY = "saved by "
_SMALLEST = 0.005  # of the largest scheme's peak: a row of less joins `others`
_MIN_SAVED = 2  # kinds of layers with a row each; else one row has all that they save


def memory_parts(results: Results) -> list[Part]:
    """Return the section of the memory table: of all schemes, or of the first one where there are many."""
    shown = results if len(results) <= MAX_SCHEMES else dict([next(iter(results.items()))])
    shown = {name: result for name, result in shown.items() if not result["nothing_to_do"]}
    if not shown:
        return []
    rows = memory_rows(shown)
    single = next(iter(shown.values())) if len(shown) == 1 else None
    if single is None:
        columns = [Column(f"{_in_two_lines(name)}\nGiB") for name in shown]
        cells = [(label, *map(_gib, amounts)) for label, amounts in rows]
    else:
        total = max(1, rows[-1][1][0])
        columns = [Column("GiB"), Column("%")]
        cells = [(label, _gib(amount), format_percent_number(amount, total)) for label, (amount,) in rows]
    heading = "GPU memory at the peak" + (f" of {next(iter(shown))}" if single else "")
    table = ScreenTable([Column(heading, left=True), *columns], cells)
    return ["", table, *_reached(shown)]


def memory_rows(results: Results) -> list[MemoryRow]:
    """Return the rows: kinds in their order, what is saved by layer kind where every scheme knows it, then totals."""
    schemes = list(results.values())
    kinds = [kind for kind in LABELS if kind not in NOT_TENSORS]
    entries = [(label_of(kind, recorded=True), [one["memory.by_kind"][kind] for one in schemes]) for kind in kinds]
    totals = list(_totals(schemes))
    most = MAX_ROWS - len(totals)
    shown = _shortened(entries, most)
    if all(result["memory.saved_by_layer_kind"] for result in schemes):
        whole, saved = label_of("feature_maps", recorded=True), list(_saved(schemes))
        left_over = most - len([row for row in shown if row[0] != whole])
        if left_over >= min(_MIN_SAVED, len(saved)):
            position = next(number for number, entry in enumerate(entries) if entry[0] == whole)
            shown = _shortened([*entries[:position], *saved, *entries[position + 1 :]], most)
    return [*shown, *totals]


def _saved(schemes: Sequence[Flat]) -> Iterator[MemoryRow]:
    """What is saved for backward, by the kind of layer that saves it, the largest first."""
    kinds = dict.fromkeys(kind for one in schemes for kind in one["memory.saved_by_layer_kind"])
    rows = [
        (f"{_SAVED_BY}{kind}", [one["memory.saved_by_layer_kind"].get(kind, 0) for one in schemes]) for kind in kinds
    ]
    yield from sorted(rows, key=lambda row: -max(row[1]))


def _totals(schemes: Sequence[Flat]) -> Iterator[MemoryRow]:
    """Rows of what is allocated, and of what the GPU holds in addition."""
    allocated = [one["memory.peak_bytes"] for one in schemes]
    yield "all tensors", allocated
    more = [[one["memory.by_kind"][kind] for one in schemes] for kind in NOT_TENSORS]
    for kind, amounts in zip(NOT_TENSORS, more, strict=True):
        if any(amounts):
            yield LABELS[kind], amounts
    if any(map(any, more)):
        yield "in use", [sum(amounts) for amounts in zip(allocated, *more, strict=True)]


def _shortened(entries: Sequence[MemoryRow], most: int) -> list[MemoryRow]:
    """At most so many rows: the smallest are in one."""
    named = [row for row in entries if any(row[1])]
    peak = max((sum(amounts) for amounts in zip(*(row[1] for row in named), strict=True)), default=0)
    small = [row for row in named if max(row[1]) < _SMALLEST * peak]
    large = [row for row in named if row not in small]
    by_size = sorted(large, key=lambda row: (row[0].startswith(_SAVED_BY), -max(row[1])))
    if len(small) < 2 and len(named) <= most:
        return named
    small += by_size[most - 1 :]
    labels = {row[0] for row in small}
    others = [sum(amounts) for amounts in zip(*(row[1] for row in small), strict=True)]
    return [*(row for row in named if row[0] not in labels), ("others", others)]


def _in_two_lines(name: str) -> str:
    return name.replace("-", "-\n", 1) if len(name) > _WIDE else name


def _gib(amount: int) -> str:
    if not amount:
        return NOT_APPLICABLE
    text = format_gib(amount)
    return "< 0.01" if text == "0.00" else text


def _reached(results: Results) -> Iterator[str]:
    """When each scheme reaches its peak and by what; of a single one, also what each block saves."""
    for name, result in results.items():
        prefix = "" if len(results) == 1 else f"{name}: "
        operation = result["memory.peak_operation"]
        where = ", ".join(filter(None, (result["memory.peak_module"] or "model", operation)))
        at = f"{format_significant(result['memory.peak_start_ms'])} ms"
        yield f"{prefix}peak reached at {at}, {result['memory.peak_phase']} of {where}"
    if len(results) == 1:
        yield from _blocks(next(iter(results.values()))["memory.saved_by_block"])


def _blocks(saved_by_block: Mapping[str, int]) -> Iterator[str]:
    blocks = [size for path, size in saved_by_block.items() if is_block(path)]
    if len(blocks) > 1:
        least, most = format_gib(min(blocks)), format_gib(max(blocks))
        each = f"{most} GiB each" if least == most else f"{least} to {most} GiB each"
        yield f"{SAVED} of {len(blocks)} blocks: {each}"
