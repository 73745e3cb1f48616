"""Compares the study of Buddy Compression with every number of its paper: writes its rows of the table of all
comparisons, from a store.

python tools/validate_buddy.py --store DIR --workloads DIR       after `python -m buddysim plot study --run`

It replays nothing: numbers without results in the store are "not run". `python -m tools.write_reference` makes
docs/validation/buddy-paper.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.base.validation_table import COLUMNS  # noqa: E402
from buddysim.papers.buddy.buddy_study import FOLDER, SCALE, BuddyStudy  # noqa: E402
from buddysim.papers.comparison_table import write_comparison  # noqa: E402
from buddysim.papers.paper_comparison import PaperComparison  # noqa: E402
from buddysim.papers.reported_values import reported_values  # noqa: E402
from buddysim.papers.simulated_values import simulation_functions  # noqa: E402
from buddysim.replay.version import MODEL_VERSION  # noqa: E402
from buddysim.sweep.cached_results import SavedResults  # noqa: E402
from buddysim.sweep.store import Store  # noqa: E402

PAGE = "buddy-paper"
NOT_RUN = "not run"


def compare(study: BuddyStudy) -> list[PaperComparison]:
    """Compare every number of the paper with the simulated one."""
    functions = simulation_functions()
    return [PaperComparison(value, functions[id](study)) for id, value in reported_values(f"{PAGE}.md").items()]


def status_of(one: PaperComparison) -> str:
    """Return the status of a comparison, or that it was not run."""
    compared = one.reported.rule not in ("none", "trained")
    return NOT_RUN if compared and one.simulated.value is None else one.status


def figures(study: BuddyStudy) -> dict[str, object]:
    """Return what the text of the page says of the results."""
    return {"scale": study.scale, "available": available_workloads(study), "version": MODEL_VERSION}


def available_workloads(study: BuddyStudy) -> str:
    """Return the workloads with results in the store."""
    names = [name for name in study.names() if study.analysis_rows(name, "ratio") is not None]
    return f"{len(names)} of 16 ({', '.join(names)})" if names else "none"


def row_of_table(one: PaperComparison) -> tuple[object, ...]:
    """Return a row of the table of all comparisons."""
    index = COLUMNS.index("status")
    return (*one.row[:index], status_of(one).strip("*"), *one.row[index + 1 :])


def main(argv: Sequence[str] | None = None) -> int:
    """Write the rows."""
    parser = argparse.ArgumentParser(prog="validate_buddy.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="of results (default: as plot has it)")
    parser.add_argument("--workloads", type=Path, metavar="FOLDER", default=FOLDER, help="of the traces")
    parser.add_argument("--scale", default=SCALE, help="of the workloads (default: %(default)s)")
    folder = ROOT / "docs" / "validation"
    parser.add_argument("-o", "--output", type=Path, default=folder, metavar="FOLDER", help="default: in docs/")
    args = parser.parse_args(argv)
    try:
        study = BuddyStudy(SavedResults(Store.at(args.store)), args.workloads, args.scale)
        comparisons = compare(study)
        write_comparison(args.output, PAGE, map(row_of_table, comparisons), figures(study))
    except (BuddysimError, OSError) as error:
        parser.error(str(error))
    print(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
