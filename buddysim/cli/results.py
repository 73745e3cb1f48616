"""``python -m buddysim results``: the store as one tidy table."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.report.screen import Part, ScreenTable
    from buddysim.sweep.store import Store

NAME = "results"
HELP = """show results of the store as one table, a row each, or write it as Parquet or CSV

--where knows units: --where 'link.bandwidth > 100 GB/s and scheme = buddy'. --sql is DuckDB's, on the view results.
In files numbers are in base units: bytes, ps, Hz, bytes per second. Times against unlimited device memory:
slowdown_vs_ideal."""

_MOST_ROWS = 50
_NAME_DIGITS = 10
_DRAWN = "sizes.synthetic_fraction"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.sweep import add_store_argument

    which = parser.add_mutually_exclusive_group()
    which.add_argument("--where", metavar="CONDITION", help="rows to show, for example 'scheme = buddy'")
    which.add_argument("--sql", metavar="QUERY", help="a query of DuckDB's, for example 'select scheme from results'")
    parser.add_argument("--columns", metavar="NAME,NAME..", help="columns to show (default: what varies, and times)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the table: .parquet or .csv")
    parser.add_argument("--all-versions", action="store_true", help="show results of older model versions, too")
    parser.add_argument("--compact", action="store_true", help="merge single result files into Parquet files")
    parser.add_argument("--prune", action="store_true", help="show what old versions left, and remove it after asking")
    parser.add_argument("--yes", action="store_true", help="with --prune: remove without asking")
    add_store_argument(parser)


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.sweep.store import Store

    store = Store.at(args.store)
    if args.yes and not args.prune:
        raise BuddysimError("--yes: goes with --prune")
    if args.compact:
        return _compact(store)
    if args.prune:
        return _prune(store, args.yes)
    from buddysim.base.output import check_output
    from buddysim.sweep.query import ResultTable

    if args.output is not None:
        _check_suffix(args.output)
        check_output(args.output)
    table = ResultTable(store)
    columns = [name.strip() for name in args.columns.split(",")] if args.columns else None
    if args.sql is not None:
        if columns:
            raise BuddysimError("--columns: goes with --where; a query of --sql names its own")
        found = table.sql(args.sql)
    else:
        found = table.select(args.where, columns, args.all_versions)
    for note in store.notes:
        from buddysim.base.terminal import one_line

        print(one_line(f"results: {note}"), file=sys.stderr)
    if args.output is not None:
        _write(found, args.output)
        print(f"{args.output}: {found.num_rows:,} rows, {found.num_columns:,} columns")
    else:
        known = args.sql is None and _DRAWN in table.columns
        shares = table.select(args.where, [_DRAWN], args.all_versions).column(_DRAWN).to_pylist() if known else []
        _show(found, columns is not None or args.sql is not None, sum(map(bool, shares)))
    return 0


def _show(found: Any, chosen: bool, drawn: int) -> None:
    from buddysim.report.screen import print_screen

    rows = found.slice(0, _MOST_ROWS)
    parts, shown_columns = _every_column(rows) if chosen else _by_engine(rows)
    more = found.num_rows - rows.num_rows
    shown = f"{found.num_rows:,} results" + (f", {rows.num_rows} of them shown" if more else "")
    hidden = found.num_columns - shown_columns
    last = [f"{shown}; {hidden} more columns (--columns, -o)" if hidden else shown]
    if drawn:
        last.append(
            f"{drawn:,} of them with sizes drawn from a distribution, not measured ({_DRAWN}): their ratios and times "
            "are those of their seed"
        )
    print_screen([*parts, "", *last])


def _every_column(found: Any) -> tuple[list[Part], int]:
    return [_table(found, found.column_names)] if found.num_rows else [], found.num_columns


def _by_engine(found: Any) -> tuple[list[Part], int]:
    """For each engine the columns that tell its results apart, and how many columns they are in all."""
    from buddysim.report.counter_texts import counter_texts
    from buddysim.sweep.distinguishing_columns import distinguishing_columns

    counters = {counter.name for counter in counter_texts()}
    of_rows = found.column("engine").to_pylist()
    engines = dict.fromkeys(of_rows)
    parts: list[Part] = []
    shown: set[str] = set()
    for engine in engines:
        rows = found.filter([each == engine for each in of_rows])
        names = distinguishing_columns(rows, counters)
        shown |= {*names}
        parts += [*([""] if parts else []), *([f"{engine}:"] if len(engines) > 1 else []), _table(rows, names)]
    return parts, len(shown)


def _table(found: Any, names: list[str]) -> ScreenTable:
    from buddysim.report.screen import Column, ScreenTable
    from buddysim.sweep.distinguishing_columns import quantity

    rows = found.select(names).to_pylist()
    texts = {name: any(isinstance(row[name], str) for row in rows) for name in names}
    columns = [Column(name, left=texts[name]) for name in names]
    return ScreenTable(columns, [[_text(name, row[name], quantity(name)) for name in names] for row in rows])


def _text(name: str, value: Any, kind: str | None) -> str:
    if value is None:
        return "-"
    if name == "key":
        return str(value)[:_NAME_DIGITS]
    if name in ("trace", "network", "targets") and isinstance(value, str):
        return value.rsplit("/", 1)[-1]
    if isinstance(value, bool):
        return str(value).lower()
    if kind is not None and isinstance(value, int | float):
        return _with_unit(value, kind)
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1000 else f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _with_unit(value: float, kind: str) -> str:
    """A machine's figure, which the table has in base units."""
    from buddysim.machine.units import Frequency, format_flops
    from buddysim.report.quantities import format_bytes, format_time

    if kind == "time":
        return format_time(value)
    if kind == "bytes":
        return format_bytes(value)
    if kind == "frequency":
        return str(Frequency(round(value)))
    return format_flops(round(value)) if kind == "flops" else f"{value / 1e9:,.5g} GB/s"


def _check_suffix(path: str) -> None:
    from buddysim.base.errors import BuddysimError

    if not path.endswith((".parquet", ".csv")):
        raise BuddysimError(f"{path}: expected a name that ends in .parquet or .csv")


def _write(found: Any, path: str) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    from buddysim.base.output import write_opened

    write_table = pyarrow.csv.write_csv if path.endswith(".csv") else pyarrow.parquet.write_table
    write_opened(path, lambda file: write_table(found, file))


def _compact(store: Store) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.sweep import compaction
    from buddysim.sweep.index import installed

    if not installed():
        raise BuddysimError("--compact needs pyarrow and DuckDB: pip install 'buddysim[sweep]'")
    written, removed = compaction.compact(store)
    print(f"{store.folder}: {written:,} results written to Parquet files, {removed:,} single files removed")
    if written:
        print(f"the single files of what was written are removed by the next --compact, from "
              f"{compaction.VISIBLE_AFTER_S:.0f} s on: then every computer sees the Parquet file")  # fmt: skip
    return 0


def _prune(store: Store, yes: bool) -> int:
    from buddysim.report.quantities import format_bytes
    from buddysim.sweep.pruning import find_old

    old = find_old(store)
    for reason, paths in old.items():
        size = sum(each.stat().st_size for each in paths)
        print(f"{len(paths):,} files, {format_bytes(size)}: {reason}")
    if not old:
        print(f"{store.folder}: nothing to remove")
        return 0
    if not yes:
        if not sys.stdin.isatty():
            print("nothing was removed: --yes removes these")
            return 0
        print("Remove them? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return 0
    for paths in old.values():
        for path in paths:
            path.unlink(missing_ok=True)
    print(f"{sum(map(len, old.values())):,} files removed")
    return 0
