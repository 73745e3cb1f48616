"""``python -m buddysim report``: results as one HTML file that needs no network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.report.web.page import Page

NAME = "report"
TASK = "look"
ORDER = 340
HELP = """collect results and write one HTML file

STORE is a folder of results, as sweep and plot keep them; RESULT.json is what 'run --json' or 'train --json' wrote.
The file holds tables whose columns sort, charts with hover values, and a part for each workload; it opens without a
network. More than 2,000 results take several files: FILE.html, FILE-2.html and so on.
Needs pip install 'buddysim[report]'."""

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
    from buddysim.base.output import check_output, check_outputs, write_text
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
    pages = _of_store(source, args.all_versions, target) if source.is_dir() else {target: _of_result(source)}
    check_outputs(pages)
    for path, page in pages.items():
        write_text(path, page.text())
        print_screen([f"{path}: {page.title}, {page.charts} charts"])
    return 0


def _of_result(source: Path) -> Page:
    from buddysim.base.saved_results import read_results
    from buddysim.report.web.result_page import result_page

    return result_page(read_results(source), source.name)


def _of_store(source: Path, all_versions: bool, target: Path) -> dict[Path, Page]:
    from buddysim.base.errors import BuddysimError
    from buddysim.report.web.store_page import ReportRow, store_pages
    from buddysim.sweep.engines import NAMES, find
    from buddysim.sweep.store import Store

    store = Store.at(source)
    rows, n_older = [], 0
    for name in sorted(store.all_keys()):
        record = store.get(name)
        if record is None or record.engine not in NAMES:
            continue
        if all_versions or record.model_version == find(record.engine).model_version():
            rows.append(ReportRow(record.row, record.result if record.engine == "analysis" else {}))
        else:
            n_older += 1
    if not rows:
        older = f": {n_older} of older model versions (--all-versions)" if n_older else ""
        damaged = f": {store.notes[0]}" if store.notes else ""
        raise BuddysimError(
            f"{source}: no results in the store{older}{damaged}: expected one that sweep or plot has written"
        )
    return store_pages(rows, str(source), target, store.notes)
