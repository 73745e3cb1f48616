"""Compares the study of Buddy Compression with every number of its paper: writes docs/validation.md from a store.

python tools/validate_buddy.py --store DIR --workloads DIR       after `python -m buddysim plot study --run`

Nothing is replayed here: what the store lacks is said to be "not run".
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
from buddysim.base.validation_table import COLUMNS  # noqa: E402
from buddysim.papers.buddy.buddy_study import FOLDER, SCALE, BuddyStudy, paper_names  # noqa: E402
from buddysim.papers.comparison_table import write_both  # noqa: E402
from buddysim.papers.paper_comparison import NOT_REPRODUCED, STATUSES, PaperComparison  # noqa: E402
from buddysim.papers.reported_values import ReportedNumber, reported_values  # noqa: E402
from buddysim.papers.simulated_values import simulation_functions  # noqa: E402
from buddysim.sweep.cached_results import SavedResults  # noqa: E402
from buddysim.sweep.store import Store  # noqa: E402

DOCUMENT = ROOT / "docs" / "validation.md"
NOT_RUN = "not run"
#: Read-off figures: what stands before the slash of their ids, and a heading.
FIGURES = {
    "fig3": "Fig. 3: ratio at ten points of the run",
    "fig5a": "Fig. 5a of the ISCA version: mean ratio by compressor",
    "fig5b": "Fig. 5b of the ISCA version: entries of each size, %",
    "fig7": "Fig. 7: ratio, and buddy accesses in %",
    "fig9": "Fig. 9: ratio by Buddy Threshold",
}
_MARKS = {"reproduced": "", "shape only": " ~", NOT_REPRODUCED: " x", NOT_RUN: ""}


def compare(study: BuddyStudy) -> list[PaperComparison]:
    """Every number of the paper with ours."""
    measure = simulation_functions()
    return [PaperComparison(stated, measure[id](study)) for id, stated in reported_values(DOCUMENT.name).items()]


def verdict(one: PaperComparison) -> str:
    """Its verdict, or that it wasn't run."""
    compared = one.reported.rule not in ("none", "trained")
    return NOT_RUN if compared and one.simulated.value is None else one.status


def document(comparisons: Sequence[PaperComparison], study: BuddyStudy) -> str:
    """docs/validation.md."""
    return "\n".join(lines(comparisons, study)) + "\n"


def lines(comparisons: Sequence[PaperComparison], study: BuddyStudy) -> Iterator[str]:
    of_text = [one for one in comparisons if one.reported.line]
    read_off = [one for one in comparisons if not one.reported.line]
    counts = {title: Counter(map(verdict, ones)) for title, ones in (("text", of_text), ("figures", read_off))}
    rows = [
        f"| {name} | {counts['text'][name]} | {counts['figures'][name]} |"
        for name in (*STATUSES, NOT_RUN)
        if counts["text"][name] or counts["figures"][name]
    ]
    yield HEAD.strip().format(counts="\n".join(rows), scale=study.scale, there=there(study))
    yield ""
    yield "## Not reproduced, of the text"
    yield ""
    missed = [one for one in of_text if verdict(one) == NOT_REPRODUCED]
    if not missed:
        yield "None."
    for one in missed:
        stated = one.reported
        cause = one.simulated.cause or one.simulated.note
        needs = f" Needs {' and '.join(stated.needs)} that nobody published." if stated.needs else ""
        yield (
            f"- **{stated.what}** ({stated.where}): {with_unit(stated.value, stated.unit)}, ours "
            f"{with_unit(one.simulated.value, stated.unit)}. {cause[:1].upper()}{cause[1:]}.{needs}"
        )
    yield ""
    yield "## The text"
    yield ""
    yield "| what | where | line | paper | ours | off by | verdict | notes |"
    yield "|---|---|--:|--:|--:|--:|---|---|"
    for one in of_text:
        yield row(one)
    for key, title in FIGURES.items():
        yield ""
        yield f"## {title}"
        yield ""
        yield from figure([one for one in read_off if one.reported.id.startswith(f"{key}/")])
    yield ""
    yield "## Why each workload's memory holds something else"
    yield ""
    yield from reasons()


def there(study: BuddyStudy) -> str:
    """The workloads that the store has findings of."""
    names = [name for name in study.names() if study.analysis_rows(name, "ratio") is not None]
    return f"{len(names)} of 16 ({', '.join(names)})" if names else "none"


def row(one: PaperComparison) -> str:
    stated = one.reported
    notes = "; ".join(note for note in (one.simulated.note, stated.note) if note)
    off = "" if one.simulated.value is None else one.error
    cells = (
        stated.what, stated.where.removeprefix("Buddy "), str(stated.line), with_unit(stated.value, stated.unit),
        with_unit(one.simulated.value, stated.unit), off, verdict(one), notes.replace("|", "/"),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def row_of_table(one: PaperComparison) -> tuple[object, ...]:
    """A row of the table of all comparisons."""
    at = COLUMNS.index("status")
    return (*one.row[:at], verdict(one).strip("*"), *one.row[at + 1 :])


def figure(ones: Sequence[PaperComparison]) -> Iterator[str]:
    """A row for each workload, group or compressor: ours / the paper's of each bar."""
    series: dict[str, dict[str, str]] = {}
    for one in ones:
        _, name, column = one.reported.id.split("/")
        theirs = ("over " if one.reported.rule == "at-least" else "") + amount(one.reported.value)
        ours = amount(one.simulated.value) if one.simulated.value is not None else verdict(one)
        series.setdefault(name, {})[column] = f"{ours} / {theirs}{_MARKS.get(verdict(one), '')}"
    columns = list(dict.fromkeys(column for cells in series.values() for column in cells))
    yield f"| ours / paper | {' | '.join(columns)} |"
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
    """Three significant digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(amount(part) for part in value)
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


HEAD = """
# Compared with the paper: Buddy Compression

Written by `tools/validate_buddy.py` from a store of results (`make figures`, then `make validate-buddy`). Every number
that the paper states in its text, and every bar and point that could be read off the figures of its ISCA 2020 version
(`buddysim/papers/buddy/`), beside ours. The list, and how each number is counted, was committed before anything was
measured; it is the head of `reported.toml` there.

Workloads at scale {scale}: {there}.

| verdict | of the text | of the figures |
|---|--:|--:|
{counts}

Reproduced: within 10 %, percentages within 3 points. Shape only: the right sign and within a factor of 2 (in tables:
~). x: not reproduced. Not run: the store this was written from has no result of it.

Targets are chosen on the input `profile` of each program and network, and everything is counted on the input `replay`.
Ratios, size classes, targets and overflow are measured on the real contents of our programs' memory. Times are
modelled: replays of one step. SPEC ACCEL's programs, their inputs, and the networks' trainings are not published: what
our independent programs hold differs, and no workload's data was changed to come nearer to a number.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the document."""
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
