"""Compares the study of Buddy Compression with every number of its paper: writes docs/validation/buddy-paper.md from a
store.

python tools/validate_buddy.py --store DIR --workloads DIR       after `python -m buddysim plot study --run`

It replays nothing: numbers without results in the store are "not run".
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.base.markdown import wrap_markdown  # noqa: E402
from buddysim.base.validation_table import COLUMNS  # noqa: E402
from buddysim.papers.buddy.buddy_study import FOLDER, SCALE, BuddyStudy, paper_names  # noqa: E402
from buddysim.papers.causes import split_causes  # noqa: E402
from buddysim.papers.comparison_table import write_both  # noqa: E402
from buddysim.papers.paper_comparison import (  # noqa: E402
    INPUT,
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    STATUSES,
    PaperComparison,
)
from buddysim.papers.reported_values import ReportedNumber, reported_values  # noqa: E402
from buddysim.papers.simulated_values import simulation_functions  # noqa: E402
from buddysim.replay.version import MODEL_VERSION  # noqa: E402
from buddysim.sweep.cached_results import SavedResults  # noqa: E402
from buddysim.sweep.store import Store  # noqa: E402

DOCUMENT = ROOT / "docs" / "validation" / "buddy-paper.md"
NOT_RUN = "not run"
#: Digitized figures: prefix of their ids, and a heading.
FIGURES = {
    "fig3": "Fig. 3: ratio at ten points of the run",
    "fig5a": "Fig. 5a of the ISCA version: mean ratio by compressor",
    "fig5b": "Fig. 5b of the ISCA version: entries of each size, %",
    "fig7": "Fig. 7: ratio, and buddy accesses in %",
    "fig9": "Fig. 9: ratio by Buddy Threshold",
}
_MARKS = {"reproduced": "", "shape only": "~", NOT_REPRODUCED: "!", NOT_RUN: ""}


def compare(study: BuddyStudy) -> list[PaperComparison]:
    """Compare every number of the paper with the simulated one."""
    functions = simulation_functions()
    return [PaperComparison(value, functions[id](study)) for id, value in reported_values(DOCUMENT.name).items()]


def status_of(one: PaperComparison) -> str:
    """Return the status of a comparison, or that it was not run."""
    compared = one.reported.rule not in ("none", "trained")
    return NOT_RUN if compared and one.simulated.value is None else one.status


def document(comparisons: Sequence[PaperComparison], study: BuddyStudy) -> str:
    """Return docs/validation/buddy-paper.md."""
    return wrap_markdown("\n".join(lines(comparisons, study))) + "\n"


def lines(comparisons: Sequence[PaperComparison], study: BuddyStudy) -> Iterator[str]:
    of_text = [one for one in comparisons if one.reported.line]
    digitized = [one for one in comparisons if not one.reported.line]
    counts = {title: Counter(map(status_of, ones)) for title, ones in (("text", of_text), ("figures", digitized))}
    rows = [
        f"| {name} | {counts['text'][name]} | {counts['figures'][name]} |"
        for name in (*STATUSES, NOT_RUN)
        if counts["text"][name] or counts["figures"][name]
    ]
    names = available_workloads(study)
    yield HEAD.strip().format(counts="\n".join(rows), scale=study.scale, available=names, version=MODEL_VERSION)
    yield ""
    yield from not_reproduced([one for one in of_text if status_of(one) == NOT_REPRODUCED])
    yield ""
    yield "## Text"
    yield ""
    yield "| what | where | paper | simulated | error | status |"
    yield "|---|---|--:|--:|--:|---|"
    yield from (row(one) for one in of_text if status_of(one) not in (INPUT, NOT_COMPARABLE, NOT_REPRODUCED))
    for status, head in ((INPUT, "Inputs"), (NOT_COMPARABLE, "Not comparable")):
        yield ""
        yield f"{head}:"
        yield ""
        yield "| what | where | paper | simulated |"
        yield "|---|---|--:|--:|"
        yield from (short_row(one) for one in of_text if one.status == status)
    for key, title in FIGURES.items():
        yield ""
        yield f"## {title}"
        yield ""
        yield from figure([one for one in digitized if one.reported.id.startswith(f"{key}/")])
    yield ""
    yield "## Memory of each workload"
    yield ""
    yield from reasons()


def available_workloads(study: BuddyStudy) -> str:
    """Return the workloads with results in the store."""
    names = [name for name in study.names() if study.analysis_rows(name, "ratio") is not None]
    return f"{len(names)} of 16 ({', '.join(names)})" if names else "none"


def not_reproduced(failed: Sequence[PaperComparison]) -> Iterator[str]:
    """Yield the numbers of the text that are not reproduced, with their causes."""
    yield "## Not reproduced"
    yield ""
    if not failed:
        yield "None."
        return
    causes, common = split_causes([one.simulated.cause or "the column `note` has the values" for one in failed])
    yield "Programs and networks of the paper are not published. Common causes:"
    yield ""
    yield from (f"- {text}" for text in common)
    yield ""
    yield "| what | where | paper | simulated | cause |"
    yield "|---|---|--:|--:|---|"
    for one, cause in zip(failed, causes, strict=True):
        reported = one.reported
        cells = (
            reported.what, section(one), with_unit(reported.value, reported.unit),
            with_unit(one.simulated.value, reported.unit), cause.replace("|", "/"),
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def row(one: PaperComparison) -> str:
    reported = one.reported
    error = "" if one.simulated.value is None else one.error
    cells = (
        reported.what, section(one), with_unit(reported.value, reported.unit),
        with_unit(one.simulated.value, reported.unit), error, status_of(one),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def short_row(one: PaperComparison) -> str:
    """Return a row without error and status; an input has one value."""
    reported = one.reported
    value, simulated = with_unit(reported.value, reported.unit), with_unit(one.simulated.value, reported.unit)
    return f"| {reported.what} | {section(one)} | {value} | {'same' if simulated == value else simulated} |"


def section(one: PaperComparison) -> str:
    """Return the section or figure of a number, without the name of the paper."""
    return one.reported.where.removeprefix("Buddy ")


def row_of_table(one: PaperComparison) -> tuple[object, ...]:
    """Return a row of the table of all comparisons."""
    index = COLUMNS.index("status")
    return (*one.row[:index], status_of(one).strip("*"), *one.row[index + 1 :])


def figure(ones: Sequence[PaperComparison]) -> Iterator[str]:
    """Yield a row for each workload, group or compressor: simulated (reported) values of its bars."""
    series: dict[str, dict[str, str]] = {}
    for one in ones:
        _, name, column = one.reported.id.split("/")
        paper = ("over " if one.reported.rule == "at-least" else "") + amount(one.reported.value)
        simulated = amount(one.simulated.value) if one.simulated.value is not None else status_of(one)
        series.setdefault(name, {})[column] = f"{simulated} ({paper}){_MARKS.get(status_of(one), '')}"
    columns = list(dict.fromkeys(column for cells in series.values() for column in cells))
    yield f"| simulated (paper) | {' | '.join(columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    for name, cells in series.items():
        yield f"| {name} | {' | '.join(cells.get(column, '') for column in columns)} |"


def reasons() -> Iterator[str]:
    from buddysim.workloads.workload_registry import REGISTRY

    for name, paper in paper_names().items():
        yield f"- **{paper}** (`{name}`): {REGISTRY.find(name).WHY}"


def with_unit(value: ReportedNumber | None, unit: str) -> str:
    return f"{amount(value)} {unit}".strip() if value is not None and not isinstance(value, str) else amount(value)


def amount(value: ReportedNumber | None) -> str:
    """Format a number with three significant digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(amount(part) for part in value)
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


HEAD = """
# Buddy Compression paper

This page compares every number that the paper reports in its text, and every bar and point of the figures of its ISCA
2020 version, with the simulated number. Written by `tools/validate_buddy.py` from a store of results of version
{version} of the model (`make figures`, `make validate-buddy`). The list of numbers and rules
(`buddysim/papers/buddy/reported.toml`) was committed before the first simulation. Values of single workloads and
notes are in the column `note` of [validation.csv](validation.csv).

Workloads at scale {scale}: {available}.

| status | of the text | of the figures |
|---|--:|--:|
{counts}

*Reproduced*: within 10 %, percentages within 3 points. *Shape only* (in tables: ~): the right sign and within a factor
of 2. !: not reproduced. *Not run*: the store has no result.

Targets are chosen on the input `profile`; everything is counted on the input `replay`. Ratios, size classes, targets
and overflow are those of the data values of buddysim's workloads. Times are simulated, of one step. SPEC ACCEL's
programs and inputs and the networks' trainings are not published. No workload's data was changed to approach a number.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the document."""
    parser = argparse.ArgumentParser(prog="validate_buddy.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="of results (default: as plot has it)")
    parser.add_argument("--workloads", type=Path, metavar="FOLDER", default=FOLDER, help="of the traces")
    parser.add_argument("--scale", default=SCALE, help="of the workloads (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=DOCUMENT, metavar="FILE", help="default: in docs/")
    args = parser.parse_args(argv)
    try:
        study = BuddyStudy(SavedResults(Store.at(args.store)), args.workloads, args.scale)
        comparisons = compare(study)
        write_both(args.output, document(comparisons, study), map(row_of_table, comparisons))
    except (BuddysimError, OSError) as error:
        parser.error(str(error))
    print(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
