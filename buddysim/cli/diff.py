"""``python -m buddysim diff A B``: only what differs, with ratios in both directions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.report.screen import Part, ScreenTable
    from buddysim.sweep.differences import ComparedItem, Difference

NAME = "diff"
HELP = """show what differs between two results, machines, traces or studies

A and B are names of results in the store (their first digits; see: results), RESULT.json or RESULT.json:SCHEME,
machines, traces or study files. First the settings that differ, then what came of them. Several schemes on one trace,
each against the baseline, are what run shows."""

_MOST_PAIRS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.sweep import add_store_argument

    parser.add_argument("first", metavar="A", help="a result, machine, trace or study")
    parser.add_argument("second", metavar="B", help="another one of the same kind")
    add_store_argument(parser)


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.report.screen import print_screen
    from buddysim.sweep.differences import thing
    from buddysim.sweep.store import Store

    store = Store.at(args.store)
    first, second = thing(args.first, store), thing(args.second, store)
    if first.kind != second.kind:
        kinds = f"{args.first} is a {first.kind}, {args.second} a {second.kind}"
        raise BuddysimError(f"diff: {kinds}: expected two of one kind")
    print_screen(_studies(first, second) if first.kind == "study" else _values(first, second))
    return 0


def _values(first: ComparedItem, second: ComparedItem) -> list[Part]:
    from buddysim.sweep.differences import differences

    settings = differences(first.settings, second.settings)
    values = differences(first.values, second.values)
    same = len(first.values.keys() & second.values.keys()) - sum(None not in (d.first, d.second) for d in values)
    parts: list[Part] = [f"A: {first.kind} {first.label}; B: {second.kind} {second.label}"]
    if first.kind == "result":
        names = ", ".join(each.name for each in settings) or "nothing"
        parts += [f"they differ in {names}", ""]
    if settings:
        parts += [_table("setting", settings), ""]
    if values:
        parts.append(_table("counter" if first.kind == "result" else "figure", values, first.texts, second.texts))
    parts += ["", f"{same:,} others are the same"]
    return parts


def _studies(first: ComparedItem, second: ComparedItem) -> list[Part]:
    from buddysim.report.screen import Column, ScreenTable
    from buddysim.sweep.differences import Difference, differences, pairs

    differ, found, alone = pairs(first, second)
    parts: list[Part] = [f"A: study {first.label}, {len(first.points):,} points; B: study {second.label}, "
                         f"{len(second.points):,} points"]  # fmt: skip
    fixed = [Difference(name, first.points[0][0].get(name), second.points[0][0].get(name)) for name in differ]
    if fixed:
        parts += [f"they differ in {', '.join(differ)}", "", _table("setting", fixed), ""]
    parts.append(f"{len(found):,} points belong together, {alone:,} have no partner")
    if not found:
        return parts
    names = list(found[0][0])
    ratios: dict[str, list[float]] = {}
    for _, a, b in found:
        for each in differences(a, b):
            if each.ratio is not None:
                ratios.setdefault(each.name, []).append(each.ratio)
    time = next((name for name in ("time_ps", "time_ms") if name in found[0][1]), None)
    if time is not None:
        rows = [[*(_text(settings[name]) for name in names), *_cells(Difference(time, a[time], b[time]))]
                for settings, a, b in found[:_MOST_PAIRS]]  # fmt: skip
        columns = [Column(name, left=True) for name in names] + [Column(text) for text in ("A", "B", "B/A", "A/B")]
        parts += ["", f"{time} of each pair", ScreenTable(columns, rows, names=max(len(names), 1))]
        if len(found) > _MOST_PAIRS:
            parts.append(f"and {len(found) - _MOST_PAIRS:,} more pairs")
    if ratios:
        parts += ["", _ratio_table(ratios)]
    return parts


def _ratio_table(ratios: dict[str, list[float]]) -> ScreenTable:
    from statistics import geometric_mean

    from buddysim.report.screen import Column, ScreenTable

    columns = [Column("counter", left=True), *(Column(t) for t in ("pairs", "B/A, geometric mean", "least", "most"))]
    rows = [
        [name, f"{len(found):,}", *(f"{each:.4g}" for each in (geometric_mean(found), min(found), max(found)))]
        for name, found in ratios.items()
        if min(found) > 0
    ]
    return ScreenTable(columns, rows)


def _table(heading: str, found: list[Difference], *texts: dict[str, str]) -> ScreenTable:
    from buddysim.report.screen import Column, ScreenTable

    columns = [Column(heading, left=True), *(Column(text) for text in ("A", "B", "B/A", "A/B"))]
    rows = [[each.name, *_cells(each)] for each in found]
    for row, each in zip(rows, found, strict=True):
        for side, (known, value) in enumerate(zip(texts, (each.first, each.second), strict=False), 1):
            row[side] = _as_stated(known[each.name], value) if each.name in known else row[side]
    return ScreenTable(columns, rows)


def _as_stated(text: str, value: Any) -> str:
    """A figure as its file states it, but sizes in powers of 1024 everywhere: a screen has one unit system."""
    from buddysim.report.quantities import format_bytes

    decimal = text.endswith((" kB", " MB", " GB", " TB")) and isinstance(value, int)
    return format_bytes(value) if decimal else text


def _cells(each: Difference) -> list[str]:
    ratio = each.ratio
    both = ["", ""] if ratio is None else [f"{ratio:.4g}", f"{1 / ratio:.4g}"]
    return [_text(each.first), _text(each.second), *both]


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
