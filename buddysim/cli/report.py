"""``python -m buddysim report``: results as one HTML file that needs no network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.report.web.page import Page

NAME = "report"
HELP = """collect results and write one HTML file

STORE is a folder of results, as sweep and plot keep them; RESULT.json is what 'run --json' or 'train --json' wrote.
The file holds tables whose columns sort, charts with hover values, and a part for each workload; it opens without a
network. Needs pip install 'buddysim[report]'."""

LARGEST_FILE = 2**28
SUFFIX = ".html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes

    completes(parser.add_argument("source", metavar="STORE|RESULT.json", help="a store's folder, or a result"), "file")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        default="out/report.html",
        help="HTML file to write (default: %(default)s)",
    )
    parser.add_argument(
        "--all-versions", action="store_true", help="also results of older model versions (default: the current ones)"
    )


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.output import check_output, write_text
    from buddysim.report.screen import print_screen
    from buddysim.report.web.page import graph_objects

    graph_objects()
    target = Path(args.output)
    if target.suffix.lower() != SUFFIX:
        raise BuddysimError(f"{target}: expected a name that ends in {SUFFIX}")
    if args.output == "out/report.html":
        target.parent.mkdir(parents=True, exist_ok=True)
    source = Path(args.source)
    check_output(target, [source] if source.is_file() else [])
    page = _of_store(source, args.all_versions) if source.is_dir() else _of_result(source)
    write_text(target, page.text())
    print_screen([f"{target}: {page.title}, {page.charts} charts"])
    return 0


def _of_result(source: Path) -> Page:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.textfile import read_json
    from buddysim.report.web.result_page import result_page

    results = read_json(source, "result", LARGEST_FILE)
    known = isinstance(results, dict) and all(
        isinstance(result, dict) and ("time_ps" in result or "time_ms" in result) for result in results.values()
    )
    if not known or not results:
        raise BuddysimError(f"{source}: neither a result nor a store: expected a file of --json or a folder")
    try:
        return result_page(results, source.name)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BuddysimError(f"{source}: incomplete result: {error}: expected a file of --json") from None


def _of_store(source: Path, all_versions: bool) -> Page:
    from buddysim.base.errors import BuddysimError
    from buddysim.report.web.store_page import ReportRow, store_page
    from buddysim.sweep.engines import find
    from buddysim.sweep.store import Store

    store = Store.at(source)
    records = [record for name in sorted(store.all_keys()) if (record := store.get(name)) is not None]
    current = [one for one in records if all_versions or one.model_version == find(one.engine).model_version()]
    if not current:
        older = f": {len(records)} of older model versions (--all-versions)" if records else ""
        raise BuddysimError(f"{source}: no results in the store{older}: expected one that sweep or plot has written")
    return store_page([ReportRow(one.row, one.result) for one in current], str(source), store.notes)
