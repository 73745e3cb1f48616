"""The report of a store: all results, and a part for each workload and network; a large one has several pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from buddysim.report.web import charts
from buddysim.report.web.page import Page

Row = Mapping[str, Any]
#: Columns of each engine's table; those that vary follow.
COLUMNS = {
    "replay": ("trace", "scheme", "machine", "link.bandwidth", "time_ps", "compression.ratio", "buddy.access_fraction"),
    "training": ("network", "scheme", "batch", "machine", "time_ms", "fits", "memory.peak_bytes"),
    "analysis": ("trace", "analysis", "compressors", "threshold", "profile_from", "title"),
}
_SUBJECTS = {"replay": "trace", "training": "network", "analysis": "trace"}
#: Chart of an analysis: kind, x, y, lines or bars by.
_FINDINGS = {
    "ratio": ("lines", "snapshot", "ratio", "compressor"),
    "metadata": ("lines", "bytes_per_slice", "hit_fraction", "line_bytes"),
    "changes": ("lines", "to_snapshot", "class_change_fraction", None),
    "targets": ("bars", "policy", "ratio", None),
    "overflow": ("lines", "snapshot", "overflow_fraction", None),
    "accesses": ("lines", "launch", "link_fraction", None),
    "threshold": ("lines", "threshold_fraction", "ratio", None),
}
_LARGE = "page-classes"
_MAX_VARYING = 12
#: Results of a page: a browser still sorts their tables at once.
RESULTS_PER_PAGE = 2000


@dataclass(frozen=True)
class ReportRow:
    """A stored result.

    Attributes
    ----------
    row : of tables, columns by name
    result : everything; needed of analyses alone
    """

    row: Row
    result: Row


def store_pages(
    rows_of_report: Sequence[ReportRow], source: str, file: Path, notes: Sequence[str] = ()
) -> dict[Path, Page]:
    """The pages of a store by file, results of one workload or network next to each other.

    Parameters
    ----------
    rows_of_report : the results
    source : the store's folder
    file : the first page; the others have its name and a number
    notes : problems met while reading the store
    """
    ordered = sorted(rows_of_report, key=lambda one: (one.row["engine"], _subject_of(one)))
    starts = range(0, len(ordered), RESULTS_PER_PAGE)
    files = [file if number == 1 else file.with_stem(f"{file.stem}-{number}") for number in range(1, len(starts) + 1)]
    pages = {}
    for path, start in zip(files, starts, strict=True):
        page = Page(f"buddysim: {source}")
        if len(files) > 1:
            page.links({f"page {number}": "" if other == path else other.name for number, other in enumerate(files, 1)})
        _fill(page, ordered[start : start + RESULTS_PER_PAGE], notes)
        pages[path] = page
    return pages


def _fill(page: Page, rows_of_report: Sequence[ReportRow], notes: Sequence[str]) -> None:
    counts = Counter(one.row["engine"] for one in rows_of_report)
    page.paragraph(", ".join(f"{count:,} results of the {engine} engine" for engine, count in counts.items()))
    for note in notes:
        page.paragraph(note)
    for engine in COLUMNS:
        rows = [_short(one.row) for one in rows_of_report if one.row["engine"] == engine]
        if rows:
            page.heading(f"Results: {engine}")
            page.table(rows, _columns(rows, engine))
    page.heading("Workloads")
    by_subject: dict[str, list[ReportRow]] = {}
    for one in rows_of_report:
        by_subject.setdefault(_subject_of(one), []).append(one)
    for subject in sorted(by_subject):
        _subject(page, subject, by_subject[subject])


def _subject_of(one: ReportRow) -> str:
    return str(_short(one.row).get(_SUBJECTS[one.row["engine"]]))


def _subject(page: Page, subject: str, rows_of_report: Sequence[ReportRow]) -> None:
    """The part of one trace or network."""
    page.open_part(f"{subject}: {len(rows_of_report):,} results")
    for engine, time, by in (("replay", "time_ps", "link.bandwidth"), ("training", "time_ms", "batch")):
        rows = [_short(one.row) for one in rows_of_report if one.row["engine"] == engine]
        if rows:
            ranked = sorted(rows, key=lambda row: (str(row.get("scheme")), _order(row.get(by))))
            columns = _columns(ranked, engine)
            shown = [{name: row.get(name) for name in columns} for row in ranked]
            page.chart(charts.bars(f"{subject}: {time} by scheme", shown, "scheme", time, by))
            page.table(shown, columns)
    for one in rows_of_report:
        if one.row["engine"] == "analysis":
            _finding(page, one)
    page.close_part()


def _order(value: Any) -> tuple[bool, Any]:
    """Numbers before texts; what isn't there is 0."""
    return isinstance(value, str), value or 0


def _finding(page: Page, one: ReportRow) -> None:
    result, name = one.result, str(one.row.get("analysis"))
    rows = [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]
    page.open_part(f"{name}: {result['title']}")
    chart = _FINDINGS.get(name)
    if chart is not None and rows:
        kind, x, y, by = chart
        page.chart(getattr(charts, kind)(str(result["title"]), rows, x, y, by))
    if name != _LARGE:
        page.table(rows, result["columns"])
    for note in result["notes"]:
        page.paragraph(note)
    page.close_part()


def _columns(rows: Sequence[Row], engine: str) -> list[str]:
    """Those of the engine, then those that vary."""
    first = [name for name in COLUMNS[engine] if any(row.get(name) is not None for row in rows)]
    names = dict.fromkeys(key for row in rows for key in row)
    hidden = {"key", "settings_hash", "baseline", "machine_checksum", "content", "sources", "seconds", "peak_rss_bytes"}
    varying = [
        name for name in names if name not in first and name not in hidden and len({row.get(name) for row in rows}) > 1
    ]
    return [*first, *varying[:_MAX_VARYING]]


def _short(row: Row) -> dict[str, Any]:
    """The row, files by their names."""
    files = ("trace", "profile_from", "targets")
    return {key: str(value).rpartition("/")[2] if key in files and value else value for key, value in row.items()}
