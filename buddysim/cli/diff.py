"""``python -m buddysim diff A B``: the values that differ, with ratios in both directions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.report.screen import Column, Part, ScreenTable
    from buddysim.sweep.differences import ComparedItem, Difference

NAME = "diff"
TASK = "look"
ORDER = 310
HELP = """compare two results, machines, traces or studies, print differences

A and B are keys of results in the store (their first digits; see: results), RESULT.json or RESULT.json:SCHEME,
machines, traces or study files. The settings that differ come first, then the values. run compares several schemes on
one trace with the baseline."""

_MAX_PAIRS = 40
#: Values wrap to no less than so many characters.
_MIN_WIDTH = 17
_NAME_WIDTH = 33


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.sweep import add_store_argument

    parser.add_argument("first", metavar="A", help="a result, machine, trace or study")
    parser.add_argument("second", metavar="B", help="another one of the same kind")
    add_store_argument(parser)


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.report.screen import print_screen
    from buddysim.sweep.differences import load_item
    from buddysim.sweep.store import Store

    store = Store.at(args.store)
    first, second = load_item(args.first, store), load_item(args.second, store)
    if first.kind != second.kind:
        kinds = f"{args.first} is a {first.kind}, {args.second} a {second.kind}"
        raise BuddysimError(f"diff: {kinds}: expected two of one kind")
    print_screen(_studies(first, second) if first.kind == "study" else _values(first, second))
    return 0


def _values(first: ComparedItem, second: ComparedItem) -> list[Part]:
    from buddysim.sweep.differences import differences

    settings = differences(first.settings, second.settings)
    values = differences(first.values, second.values)
    n_equal = len(first.values.keys() & second.values.keys()) - sum(None not in (d.first, d.second) for d in values)
    parts: list[Part] = [f"A: {first.kind} {first.label}; B: {second.kind} {second.label}"]
    if first.kind == "result":
        names = ", ".join(each.name for each in settings) or "nothing"
        parts += [f"settings that differ: {names}", ""]
    if settings:
        parts += [_table("setting", settings), ""]
    if values:
        heading = {"result": "counter", "machine": "key"}.get(first.kind, "quantity")
        parts.append(_table(heading, values, first.texts, second.texts))
    parts += ["", f"{n_equal:,} other values are equal"]
    return parts


def _studies(first: ComparedItem, second: ComparedItem) -> list[Part]:
    from buddysim.report.screen import Column, ScreenTable
    from buddysim.sweep.differences import Difference, differences, pair_points

    differ, pairs, n_single = pair_points(first, second)
    parts: list[Part] = [f"A: study {first.label}, {len(first.points):,} points; B: study {second.label}, "
                         f"{len(second.points):,} points"]  # fmt: skip
    fixed = [Difference(name, first.points[0][0].get(name), second.points[0][0].get(name)) for name in differ]
    if fixed:
        parts += [f"settings that differ: {', '.join(differ)}", "", _table("setting", fixed), ""]
    parts.append(f"{len(pairs):,} pairs of points, {n_single:,} points without a partner")
    if not pairs:
        return parts
    names = list(pairs[0][0])
    ratios: dict[str, list[float]] = {}
    for _, a, b in pairs:
        for each in differences(a, b):
            if each.ratio is not None:
                ratios.setdefault(each.name, []).append(each.ratio)
    time = next((name for name in ("time_ps", "time_ms") if name in pairs[0][1]), None)
    if time is not None:
        rows = [[*(_text(name, settings[name]) for name in names), *_cells(Difference(time, a[time], b[time]))]
                for settings, a, b in pairs[:_MAX_PAIRS]]  # fmt: skip
        columns = [Column(name, left=True) for name in names] + _value_columns()
        parts += ["", "time of each pair", ScreenTable(columns, rows, names=max(len(names), 1))]
        if len(pairs) > _MAX_PAIRS:
            parts.append(f"and {len(pairs) - _MAX_PAIRS:,} more pairs")
    if ratios:
        parts += ["", _ratio_table(ratios)]
    return parts


def _ratio_table(ratios: dict[str, list[float]]) -> ScreenTable:
    from statistics import geometric_mean

    from buddysim.report.screen import Column, ScreenTable

    columns = [Column("counter", left=True), Column("pairs", priority=1)]
    columns += [Column(text, group="B/A") for text in ("mean", "min", "max")]
    rows = [
        [name, f"{len(each):,}", *(_format_ratio(one) for one in (geometric_mean(each), min(each), max(each)))]
        for name, each in ratios.items()
        if min(each) > 0
    ]
    return ScreenTable(columns, rows)


def _value_columns() -> list[Column]:
    """The columns of two values and their ratios; the inverse ratio is the first to be left out."""
    from buddysim.report.screen import Column

    return [
        Column("A", wrap_to=_MIN_WIDTH),
        Column("B", wrap_to=_MIN_WIDTH),
        Column("B/A", priority=1),
        Column("A/B", priority=2),
    ]


def _table(heading: str, values: list[Difference], *texts: dict[str, str]) -> ScreenTable:
    from buddysim.report.screen import Column, ScreenTable

    columns = [Column(heading, left=True, wrap_to=_NAME_WIDTH), *_value_columns()]
    rows = [[each.name, *_cells(each)] for each in values]
    for row, each in zip(rows, values, strict=True):
        for side, (known, value) in enumerate(zip(texts, (each.first, each.second), strict=False), 1):
            row[side] = _as_in_file(known[each.name], value) if each.name in known else row[side]
    return ScreenTable(columns, rows)


def _as_in_file(text: str, value: Any) -> str:
    """A figure as its file has it, but sizes in powers of 1024 everywhere: a screen has one unit system."""
    from buddysim.report.quantities import format_bytes

    decimal = text.endswith((" kB", " MB", " GB", " TB")) and isinstance(value, int)
    return format_bytes(value) if decimal else text


def _cells(each: Difference) -> list[str]:
    """Both values and both ratios; values that three digits don't tell apart have all of their digits."""
    from buddysim.report.result_values import format_exact

    values = [_text(each.name, each.first), _text(each.name, each.second)]
    if values[0] == values[1] and each.first != each.second:
        values = [format_exact(each.name, each.first), format_exact(each.name, each.second)]
    ratio = each.ratio
    return [*values, *(["", ""] if ratio is None else [_format_ratio(ratio), _format_ratio(1 / ratio)])]


def _format_ratio(ratio: float) -> str:
    """A ratio with three digits; with more if it would look like 1 and isn't."""
    from buddysim.report.quantities import format_significant

    if ratio == 1 or abs(ratio - 1) >= 0.005:
        return format_significant(ratio)
    decimals = next((n for n in range(3, 15) if float(f"{ratio:.{n}f}") != 1), 15)
    return f"{ratio:.{decimals}f}"


def _text(name: str, value: Any) -> str:
    from buddysim.report.result_values import format_value

    return format_value(name, value)
