"""Compares the training simulator with every number of papers on training: writes their rows of the table of all
comparisons (make validate). `python -m tools.write_reference` makes docs/validation/training-papers.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.papers.cdma.performance_numbers import BEHIND_RELU, REPORTED, mean_ratio  # noqa: E402
from buddysim.papers.comparison_table import write_comparison  # noqa: E402
from buddysim.papers.gist.mfr import stashed_percent  # noqa: E402
from buddysim.papers.gist.paper_networks import lossy, mfr, run  # noqa: E402
from buddysim.papers.paper_comparison import PaperComparison  # noqa: E402
from buddysim.papers.reported_values import reported_values  # noqa: E402
from buddysim.papers.simulated_values import simulation_functions  # noqa: E402
from buddysim.papers.vdnn.baseline import growth_gib, largest_backward_fraction  # noqa: E402
from buddysim.papers.vdnn.memory_usage import POLICIES, mean_saving, outcome, readings, weights_once  # noqa: E402
from buddysim.papers.vdnn.paper_networks import GIB, SIX  # noqa: E402
from buddysim.sweep.cached_results import SavedResults  # noqa: E402

KINDS = ("peak", "average")
PAGE = "training-papers"


def compare(training: SavedResults) -> list[PaperComparison]:
    """Compare every number of the papers with the simulated one."""
    functions = simulation_functions()
    return [PaperComparison(value, functions[id](training)) for id, value in reported_values(f"{PAGE}.md").items()]


def figures(training: SavedResults) -> dict[str, object]:
    """Return the simulated figures in the text of the page, which no number of the papers is."""
    return {
        "backward": backward_unused(training),
        "behind_relu": f"{mean_ratio(BEHIND_RELU):.2f}",
        "stated_ratio": f"{mean_ratio(REPORTED):.2f}",
        "overfeat": f"{mfr('OverFeat', 'gist-base', 'dynamic'):.2f}",
        "software": f"{mfr('AlexNet', lossy('AlexNet'), 'dynamic', False):.2f}",
        "inception": f"{run('Inception', 'gist-base').footprint_bytes / GIB:.1f}",
        "stashed": f"{stashed_percent('AlexNet'):.0f}",
        "growth": [f"{growth:.1f}" for growth in growth_gib(training)],
        "once": {policy: weights_once(training, policy) for policy in POLICIES},
        "readings": [
            [
                name,
                *(
                    " / ".join(f"{mean_saving(training, policy, kind, reading):.0f}" for kind in KINDS)
                    for policy in POLICIES
                ),
                f"{outcome(training, 'vgg19', 128, 'baseline-p', reading)['memory.baseline_bytes'] / GIB:.1f}",
            ]
            for name, reading in readings().items()
        ],
    }


def backward_unused(training: SavedResults) -> str:
    """Return the percentage of memory not in use (Fig. 1) if backward steps counted."""
    percentages = [
        100 * (1 - largest_backward_fraction(training.result(name, batch, "baseline-p"))) for _, name, batch in SIX
    ]
    return f"{min(percentages):.0f} to {max(percentages):.0f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the rows."""
    parser = argparse.ArgumentParser(prog="validate_training.py", description=(__doc__ or "").partition("\n")[0])
    folder = ROOT / "docs" / "validation"
    parser.add_argument("-o", "--output", type=Path, default=folder, metavar="FOLDER", help="default: in docs/")
    args = parser.parse_args(argv)
    try:
        training = SavedResults()
        comparisons = compare(training)
        write_comparison(args.output, PAGE, (one.row for one in comparisons), figures(training))
    except (BuddysimError, OSError) as error:
        print(f"validate_training.py: error: {error}", file=sys.stderr)
        return 2
    counts = Counter(one.status for one in comparisons)
    print(f"{args.output}: " + ", ".join(f"{count} {status}" for status, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
