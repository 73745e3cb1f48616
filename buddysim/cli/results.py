"""``python -m buddysim results``: the result store as one table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.report.screen import Part, ScreenTable
    from buddysim.sweep.store import Store

NAME = "results"
TASK = "look"
ORDER = 300
HELP = """select results of a store and print or write a table

--where takes units: 'link.bandwidth > 100 GB/s and scheme = buddy'. --sql is DuckDB's, on the view results.
In files, numbers are in base units: bytes, ps, Hz, bytes per second. slowdown_vs_ideal is time / time with
unlimited device memory; above 1 is slower. performance_vs_oracle is the oracle's time / time; below 1 is slower."""

_MAX_ROWS = 50
#: Rows among which the columns and the order of a screen are chosen.
_MAX_COMPARED_ROWS = 2000
_MAX_HEADING = 10
EXIT_DAMAGED = 1
#: The value of --columns that lists the columns.
LIST = "list"

Row = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.sweep import add_store_argument

    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--where", metavar="CONDITION", help="condition of the rows to show, for example 'scheme = buddy'"
    )
    which.add_argument("--sql", metavar="QUERY", help="query for DuckDB, for example 'select scheme from results'")
    parser.add_argument(
        "--columns",
        metavar="NAME,NAME..",
        help="columns to show; list: print the names of all (default: the settings that vary, and times)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="file to which the table is written: .parquet or .csv")
    parser.add_argument("--all-versions", action="store_true", help="show results of older model versions, too")
    care = parser.add_mutually_exclusive_group()
    care.add_argument("--compact", action="store_true", help="merge single result files into Parquet files")
    care.add_argument(
        "--prune", action="store_true", help="show the files that old versions left, and remove them after a question"
    )
    care.add_argument(
        "--verify", action="store_true", help="read every result, compare its checksum, and name the damaged ones"
    )
    parser.add_argument("--yes", action="store_true", help="remove the files of --prune without a question")
    add_store_argument(parser)


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.sweep.index import installed
    from buddysim.sweep.store import Store

    store = Store.at(args.store)
    if args.yes and not args.prune:
        raise BuddysimError("--yes: no --prune: expected both or neither")
    if args.compact:
        return _compact(store)
    if args.prune:
        return _prune(store, args.yes)
    if args.verify:
        return _verify(store)
    if args.sql is not None and args.columns:
        raise BuddysimError("--columns: with --sql: expected one of them; a query names its own columns")
    if not installed():
        return _run_without_index(store, args)
    return _run_with_index(store, args)


def _run_with_index(store: Store, args: argparse.Namespace) -> int:
    from buddysim.base.output import check_output
    from buddysim.sweep.query import ResultTable

    if args.output is not None:
        _check_suffix(args.output)
        check_output(args.output)
    table = ResultTable(store)
    columns = _columns(args)
    by_query = args.sql is not None
    marked = [*columns, "sizes"] if columns and "sizes" in table.columns and "sizes" not in columns else columns
    selected = marked if args.output is None else columns
    selection = table.sql(args.sql) if by_query else table.select(args.where, selected, args.all_versions)
    _print_notes(store)
    if args.output is not None:
        _write(selection, args.output)
        print(f"{args.output}: {selection.num_rows:,} rows, {selection.num_columns:,} columns")
        return 0
    rows = selection.slice(0, _MAX_COMPARED_ROWS).to_pylist()
    names = columns or (selection.column_names if by_query else None)
    _show(rows, selection.num_rows, selection.column_names, names, args.columns == LIST)
    return 0


def _run_without_index(store: Store, args: argparse.Namespace) -> int:
    """Show the whole table, which needs no database."""
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import hint
    from buddysim.sweep.result_rows import read_rows

    for option, value in (("--where", args.where), ("--sql", args.sql), ("-o", args.output)):
        if value is not None:
            raise BuddysimError(f"{option}: needs DuckDB and pyarrow: expected pip install 'buddysim[sweep]'")
    rows = read_rows(store, args.all_versions)
    known = list(dict.fromkeys(name for row in rows for name in row))
    columns = _columns(args)
    for name in columns or ():
        if name not in known:
            raise BuddysimError(f"--columns: {name}: unknown column{hint(name, known)}")
    _print_notes(store)
    _show(rows, len(rows), known, columns, args.columns == LIST)
    return 0


def _columns(args: argparse.Namespace) -> list[str] | None:
    """The columns that were requested; None: those that distinguish rows."""
    if not args.columns or args.columns == LIST:
        return None
    return [name.strip() for name in args.columns.split(",")]


def _print_notes(store: Store) -> None:
    from buddysim.base.terminal import one_line

    for note in store.notes:
        print(one_line(f"results: {note}"), file=sys.stderr)


def _show(rows: Sequence[Row], n_results: int, known: Sequence[str], columns: list[str] | None, lists: bool) -> None:
    """Print rows of a table.

    Parameters
    ----------
    rows : those of which some are shown
    n_results : rows of the table
    known : all of its columns
    columns : those to show; None: those that distinguish rows
    lists : whether the names of all columns are printed, no rows
    """
    from buddysim.report.screen import print_screen, screen_width, shown_columns

    if lists:
        print_screen(_column_list(known))
        return
    if columns is not None:
        shown = rows[:_MAX_ROWS]
        if "sizes" not in columns and any(row.get("sizes") == "synthetic" for row in shown):
            columns = [*columns, "sizes"]  # no ratio of synthetic sizes is shown without it
        print_screen([*([_table(shown, columns)] if shown else []), "", _count_text(n_results, len(shown))])
        return
    parts: list[Part] = []
    visible: set[str] = set()
    n_shown = 0
    engines = dict.fromkeys(row["engine"] for row in rows)
    for engine in engines:
        names, of_engine = _distinguished([row for row in rows if row["engine"] == engine])
        table = _table(of_engine[: _MAX_ROWS - n_shown], names, has_priorities=True)
        n_shown += len(table.rows)
        visible |= {names[column] for column in shown_columns(table, screen_width())}
        parts += [*([""] if parts else []), *([f"{engine}:"] if len(engines) > 1 else []), table]
    n_hidden = len(known) - len(visible)
    hidden = f"{n_hidden:,} more columns: results --columns {LIST}" if n_hidden else ""
    parts += ["", _count_text(n_results, n_shown), *([hidden] if hidden else [])]
    if any(row.get("sizes") == "synthetic" for row in rows):
        parts.append("synthetic: sizes sampled from a distribution; the ratio and the time are those of one seed")
    print_screen(parts)


def _count_text(n_results: int, n_shown: int) -> str:
    from buddysim.base.counted import counted

    return counted(n_results, "result") + (f", the first {n_shown}" if n_shown < n_results else "")


def _distinguished(rows: Sequence[Row]) -> tuple[list[str], list[Row]]:
    """The columns that distinguish rows of one engine, and the rows, sorted by those that vary."""
    from buddysim.report.counter_texts import counter_texts
    from buddysim.sweep.distinguishing_columns import distinguishing_columns, sort_rows, varying_columns

    names = distinguishing_columns(rows, {counter.name for counter in counter_texts()})
    return names, sort_rows(rows, [*varying_columns(rows, names), "key"])


def _column_list(known: Sequence[str]) -> list[Part]:
    """The names of all columns, by kind."""
    from buddysim.report.counter_texts import counter_texts
    from buddysim.sweep.engines import NAMES, find

    counters = {counter.name for counter in counter_texts()}
    settings = {name for engine in map(find, NAMES) for name in engine.axes()}
    kinds: dict[str, list[str]] = {"settings": [], "machine keys": [], "counters": [], "others": []}
    for name in known:
        is_key = "." in name and name not in counters
        kind = "settings" if name in settings else "machine keys" if is_key else "counters" if name in counters else ""
        kinds[kind or "others"].append(name)
    parts: list[Part] = []
    for kind, names in kinds.items():
        if names:
            parts += [*([""] if parts else []), f"{kind}:", f"  {', '.join(names)}"]
    return [*parts, "", f"{len(known):,} columns; buddysim explain NAME defines one"]


def _table(rows: Sequence[Row], names: Sequence[str], has_priorities: bool = False) -> ScreenTable:
    """The table of some columns.

    Parameters
    ----------
    has_priorities : whether columns may be left out on a narrow screen: first those with one value, then settings from
        the last one on
    """
    from buddysim.report.result_values import format_value
    from buddysim.report.screen import Column, ScreenTable
    from buddysim.sweep.distinguishing_columns import KEY, SIZES, TIMES, varying_columns

    varying = varying_columns(rows, names)
    columns = []
    for number, name in enumerate(names):
        is_text = any(isinstance(row.get(name), str) for row in rows)
        priority = 0
        if has_priorities and name not in (KEY, "scheme", SIZES, *TIMES):
            priority = number + 1 + (0 if name in varying else 1000)
        columns.append(Column(_heading(name, has_priorities), left=is_text, priority=priority))
    cells = [[format_value(name, row.get(name)) for name in names] for row in rows]
    return ScreenTable(columns, cells)


def _heading(name: str, in_lines: bool) -> str:
    """The name of a column; that of a time is without its unit, which the cell has.

    Parameters
    ----------
    in_lines : whether long names take two lines
    """
    if name in ("time_ps", "time_ms"):
        return "time"
    if not in_lines or len(name) <= _MAX_HEADING:
        return name
    first, mark, second = name.rpartition("_vs_") if "_vs_" in name else name.rpartition(".")
    return f"{first}_\nvs_{second}" if mark == "_vs_" else f"{first}{mark}\n{second}" if mark else name


def _check_suffix(path: str) -> None:
    from buddysim.base.errors import BuddysimError

    if not path.endswith((".parquet", ".csv")):
        raise BuddysimError(f"{path}: expected a name that ends in .parquet or .csv")


def _write(table: Any, path: str) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    from buddysim.base.output import write_opened

    write_table = pyarrow.csv.write_csv if path.endswith(".csv") else pyarrow.parquet.write_table
    write_opened(path, lambda file: write_table(table, file))


def _compact(store: Store) -> int:
    from buddysim.base.counted import counted
    from buddysim.base.errors import BuddysimError
    from buddysim.sweep import compaction
    from buddysim.sweep.index import installed

    if not installed():
        raise BuddysimError("--compact needs pyarrow and DuckDB: pip install 'buddysim[sweep]'")
    written, removed = compaction.compact(store)
    print(
        f"{store.folder}:\n{counted(written, 'result')} written to Parquet files, "
        f"{counted(removed, 'single file')} removed"
    )
    if written:
        print(f"the next --compact, {compaction.VISIBLE_AFTER_S:.0f} s or more from now, removes their single files:\n"
              "every computer sees the Parquet files by then")  # fmt: skip
    return 0


def _verify(store: Store) -> int:
    from buddysim.base.counted import counted
    from buddysim.base.terminal import one_line
    from buddysim.sweep.verification import verify

    result = verify(store)
    for where, reason in result.damaged.items():
        print(one_line(f"{where}: damaged: {reason}"))
    newer = f", {result.n_newer:,} of a newer version, unread" if result.n_newer else ""
    print(f"{counted(result.n_whole, 'result')} whole, {len(result.damaged):,} damaged{newer}")
    if not result.damaged:
        return 0
    print("results --prune removes damaged single files, rm a damaged Parquet file;\n"
          "the sweep that made the results simulates them again")  # fmt: skip
    return EXIT_DAMAGED


def _prune(store: Store, yes: bool) -> int:
    from buddysim.report.quantities import format_bytes
    from buddysim.sweep.pruning import find_old

    old = find_old(store)
    for reason, paths in old.items():
        size = sum(each.stat().st_size for each in paths)
        print(f"{len(paths):,} files, {format_bytes(size)}: {reason}")
    if not old:
        print(f"{store.folder}:\nnothing to remove")
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
