"""``python -m buddysim results``: the store as one tidy table."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.report.screen import Table as ScreenTable
    from buddysim.sweep.store import Store

NAME = "results"
HELP = """show results of the store as one table, a row each, or write it as Parquet or CSV

--where knows units: --where 'link.bandwidth > 100 GB/s and scheme = buddy'. --sql is DuckDB's, on the view results.
Numbers are in base units: bytes, ps, Hz, bytes per second. Times against unlimited device memory: time_vs_ideal."""

_MOST_ROWS = 50
_ALWAYS = ("name", "trace", "network", "machine", "scheme")
_TIMES = ("time_ps", "time_vs_ideal", "time_ms", "time_vs_oracle")
#: Columns that say nothing on a screen.
_NEVER = ("asked", "baseline", "machine_checksum", "content", "sources", "file_bytes", "file_changed_ns", "seconds",
          "peak_rss_bytes", "model_version", "engine")  # fmt: skip
_NAME_DIGITS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.sweep import add_store_argument

    which = parser.add_mutually_exclusive_group()
    which.add_argument("--where", metavar="CONDITION", help="rows to show, for example 'scheme = buddy'")
    which.add_argument("--sql", metavar="QUERY", help="a query of DuckDB's, for example 'select scheme from results'")
    parser.add_argument("--columns", metavar="NAME,NAME..", help="columns to show (default: what varies, and times)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the table: .parquet or .csv")
    parser.add_argument("--every-version", action="store_true", help="results of older model versions too")
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
    from buddysim.sweep.query import Table

    if args.output is not None:
        _check_suffix(args.output)
        check_output(args.output)
    table = Table(store)
    columns = [name.strip() for name in args.columns.split(",")] if args.columns else None
    if args.sql is not None:
        if columns:
            raise BuddysimError("--columns: goes with --where; a query of --sql names its own")
        found = table.sql(args.sql)
    else:
        found = table.select(args.where, columns, args.every_version)
    for note in store.notes:
        from buddysim.base.terminal import one_line

        print(one_line(f"results: {note}"), file=sys.stderr)
    if args.output is not None:
        _write(found, args.output)
        print(f"{args.output}: {found.num_rows:,} rows, {found.num_columns:,} columns")
    else:
        _show(found, chosen=columns is not None or args.sql is not None)
    return 0


def _show(found: Any, chosen: bool) -> None:
    from buddysim.report.screen import print_screen

    rows = found.slice(0, _MOST_ROWS).to_pylist()
    names = found.column_names if chosen else _telling(found)
    parts = [_screen_table(rows, names)] if rows else []
    more = found.num_rows - len(rows)
    shown = f"{found.num_rows:,} results" + (f", {len(rows)} of them shown" if more else "")
    hidden = found.num_columns - len(names)
    print_screen([*parts, "", f"{shown}; {hidden} more columns (--columns, -o)" if hidden else shown])


def _telling(found: Any) -> list[str]:
    """The columns that a screen shows: who a row is, the settings that vary, and its times."""
    from buddysim.sweep.engines import NAMES, find

    settings = {name for engine in map(find, NAMES) for name in engine.axes()}
    counters = _counter_names()
    kept = []
    for name in found.column_names:
        column = found.column(name)
        if name in _NEVER or column.null_count == len(column):
            continue
        varies = len(column.unique()) > 1
        if name in _ALWAYS or (name in _TIMES) or (varies and (name in settings or name not in counters)):
            kept.append(name)
    first = [name for name in _ALWAYS if name in kept]
    last = [name for name in _TIMES if name in kept]
    return [*first, *(name for name in kept if name not in (*first, *last)), *last]


def _counter_names() -> set[str]:
    from buddysim.report.counter_texts import counter_texts

    return {counter.name for counter in counter_texts()}


def _screen_table(rows: list[dict[str, Any]], names: list[str]) -> ScreenTable:
    from buddysim.report.screen import Column, Table

    texts = {name: any(isinstance(row[name], str) for row in rows) for name in names}
    columns = [Column(name, left=texts[name]) for name in names]
    return Table(columns, [[_text(name, row[name]) for name in names] for row in rows])


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "name":
        return str(value)[:_NAME_DIGITS]
    if name in ("trace", "network", "targets") and isinstance(value, str):
        return value.rsplit("/", 1)[-1]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1000 else f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _check_suffix(path: str) -> None:
    from buddysim.base.errors import BuddysimError

    if not path.endswith((".parquet", ".csv")):
        raise BuddysimError(f"{path}: expected a name that ends in .parquet or .csv")


def _write(found: Any, path: str) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    from buddysim.base.output import write_with

    if path.endswith(".csv"):
        write_with(path, lambda part: pyarrow.csv.write_csv(found, part))
    else:
        write_with(path, lambda part: pyarrow.parquet.write_table(found, part))


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
    from buddysim.report.quantities import bytes_text
    from buddysim.sweep.pruning import find_old

    old = find_old(store)
    for reason, paths in old.items():
        size = sum(each.stat().st_size for each in paths)
        print(f"{len(paths):,} files, {bytes_text(size)}: {reason}")
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
