"""Compares the training simulator with every number of the vDNN and cDMA papers: writes docs/validation-training.md.

python tools/validate_training.py               writes the document (make validate)
python tools/validate_training.py --check       only says whether it is up to date
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

from buddysim.base.atomic import write_whole  # noqa: E402
from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.papers.measured import measurements  # noqa: E402
from buddysim.papers.saved import SavedResults  # noqa: E402
from buddysim.papers.stated import Amount, numbers, paper_folders  # noqa: E402
from buddysim.papers.vdnn.baseline import largest_backward_share  # noqa: E402
from buddysim.papers.vdnn.networks import SIX  # noqa: E402
from buddysim.papers.verdict import NOT_REPRODUCED, VERDICTS, Comparison  # noqa: E402

DOCUMENT = ROOT / "docs" / "validation-training.md"


def compare(training: SavedResults) -> list[Comparison]:
    """Every number of the papers with the simulator's."""
    measure = measurements()
    return [Comparison(stated, measure[id](training)) for id, stated in numbers().items()]


def document(comparisons: Sequence[Comparison], training: SavedResults) -> str:
    """docs/validation-training.md."""
    return "\n".join(lines(comparisons, training)) + "\n"


def lines(comparisons: Sequence[Comparison], training: SavedResults) -> Iterator[str]:
    counts = Counter(one.verdict for one in comparisons)
    yield HEAD.strip().format(
        counts="\n".join(f"| {verdict} | {counts[verdict]} |" for verdict in VERDICTS if counts[verdict]),
        backward=backward_unused(training),
        networks=", ".join(f"{label.partition(' (')[0]}: `{name}`" for label, name, _ in SIX[:4]),
    )
    missed = [one for one in comparisons if one.verdict == NOT_REPRODUCED]
    yield ""
    yield "## Not reproduced"
    yield ""
    if not missed:
        yield "None."
    for one in missed:
        stated = one.stated
        yield (
            f"- **{stated.what}** ({stated.where}): {with_unit(stated.value, stated.unit)}, "
            f"ours {amount(one.measured.value)}. {sentence(one.measured.cause)}"
        )
    sections = [(paper.TITLE, paper.TITLE) for paper in paper_folders()]
    for title, prefix in (*sections, ("Derived from the papers", "derived")):
        yield ""
        yield f"## {title}"
        yield ""
        yield "| what | where | paper | ours | off by | verdict | notes |"
        yield "|---|---|--:|--:|--:|---|---|"
        for one in comparisons:
            if one.stated.where.startswith(prefix):
                yield row(one)


def backward_unused(training: SavedResults) -> str:
    """The share of memory not in use (Fig. 1) if backward steps counted."""
    shares = [100 * (1 - largest_backward_share(training.result(name, batch, "base-p"))) for _, name, batch in SIX]
    return f"{min(shares):.0f} to {max(shares):.0f}"


def row(one: Comparison) -> str:
    stated = one.stated
    notes = "; ".join(note for note in (one.measured.note, stated.note) if note)
    cells = (
        stated.what, stated.where.removeprefix("derived: "), with_unit(stated.value, stated.unit),
        with_unit(one.measured.value, stated.unit), one.error, one.verdict, notes.replace("|", "/"),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def with_unit(value: Amount | None, unit: str) -> str:
    return f"{amount(value)} {unit}".strip() if value is not None and not isinstance(value, str) else amount(value)


def amount(value: Amount | None) -> str:
    """Three significant digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        if len(value) == 2:
            return f"{amount(value[0])} to {amount(value[1])}"
        return ", ".join(amount(part) for part in value)
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


HEAD = """
# Compared with the papers: vDNN and cDMA

Written by `make validate` (`tools/validate_training.py`); a test keeps it up to date. Every number that the two papers
state in their text, and some that follow from it (`buddysim/papers/*/stated.toml`), with what the simulator gives.

| verdict | numbers |
|---|--:|
{counts}

Tolerances, set before comparing: memory within 7 % of the stated number; shares, savings and losses within 7
percentage points; bounds ("at most", "more than") hold; arithmetic is equal at the digits given. A number that misses
its tolerance is inconclusive if it includes cuDNN 4's workspaces, which are published nowhere, or if the paper
contradicts itself on it. Our workspaces come from one model for every network, fitted to none of these numbers ([cost
model](cost-model.md)). Properties of the papers' ImageNet trainings (82,000 to 300,000 iterations) are shown with those
of our own training, without a verdict.

The savings of vDNN's Fig. 11 imply larger workspaces than the paper's totals, which leave 11 to 25 % of the rest for
AlexNet and VGG-16. Averaged over layers instead of time, ours come closer to the stated averages; the table has both.
Workspace alone does not explain the difference: without any, the savings of all(p), conv(p) and dyn still fall short of
the stated ones. The rest is unexplained. An error of ours isn't ruled out, although the laws that the tests check on
every run show none.

Where the papers leave it open, these choices were made with their numbers in view:

- The share of memory in use (Fig. 1) counts X, Y, weights and workspace of a forward step, as Fig. 5 does. Backward
  steps, with dX and dY, would leave only {backward} % unused.
- The share of time in CONV layers is the mean over the six networks' feature layers.
- The gain of cDMA is computed with 62 % zeros, the average that the paper states, in every map but input images.
- cDMA's times are those at the link's effective rate, 12.8 GB/s; the notes have those at its peak rate, 16 GB/s.
- That FC layers are the sparsest, zlib's ratio by layout, and how much faster than ZVC it is, count as properties of a
  training.
- The first CONV's density is compared in points (its shape, close to a half, holds either way), and so is 16/336.
- AlexNet's 81 %, the range of 14 to 67 GiB and VGG-416's 4.2 GiB are taken as contradictions within the paper, for
  the reasons in the notes; taken as numbers that include workspace, they are off by as much as the table says.

With the strictest reading of each of these, more than five numbers would count as not reproduced.

Networks: {networks}. In brackets: the batch. Machine `titan-x`, link `pcie3` (12.8 GB/s), `cudnn4` for vDNN;
`cudnn5`, `titan-x` and `titan-xp` for cDMA. Memory savings and performance count the feature-extraction layers,
against `base-p` and the oracle; what fits is decided on the whole network. Where a scheme doesn't fit, its figures
are those of a GPU with more memory. The papers' GB of memory are GiB.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Writes or checks the document."""
    parser = argparse.ArgumentParser(prog="validate_training.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=DOCUMENT, metavar="FILE", help="default: in docs/")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if it is out of date")
    args = parser.parse_args(argv)
    try:
        training = SavedResults(folder=None)
        comparisons = compare(training)
        text = document(comparisons, training)
        if args.check:
            same = args.output.exists() and args.output.read_text(encoding="utf-8") == text
            print(f"{args.output}: {'up to date' if same else 'out of date: run make validate'}")
            return 0 if same else 1
        write_whole(args.output, lambda path: path.write_text(text, encoding="utf-8"))
    except (BuddysimError, OSError) as error:
        print(f"validate_training.py: error: {error}", file=sys.stderr)
        return 2
    counts = Counter(one.verdict for one in comparisons)
    print(f"{args.output}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
