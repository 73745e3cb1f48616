"""Compares the training simulator with every number of papers on training: writes docs/validation/training-papers.md.

python tools/validate_training.py               writes the document (make validate)
python tools/validate_training.py --check       reports whether the document is up to date
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
from buddysim.papers.causes import split_causes  # noqa: E402
from buddysim.papers.cdma.performance_numbers import BEHIND_RELU, REPORTED, mean_ratio  # noqa: E402
from buddysim.papers.comparison_table import write_both  # noqa: E402
from buddysim.papers.gist.mfr import stashed_percent  # noqa: E402
from buddysim.papers.gist.paper_networks import lossy, mfr, run  # noqa: E402
from buddysim.papers.paper_comparison import (  # noqa: E402
    INPUT,
    NOT_REPRODUCED,
    OTHER_TRAINING,
    STATUSES,
    PaperComparison,
)
from buddysim.papers.reported_values import ReportedNumber, paper_folders, reported_value, reported_values  # noqa: E402
from buddysim.papers.simulated_values import simulation_functions  # noqa: E402
from buddysim.papers.vdnn.baseline import growth_gib, largest_backward_fraction  # noqa: E402
from buddysim.papers.vdnn.memory_usage import POLICIES, mean_saving, outcome, readings, weights_once  # noqa: E402
from buddysim.papers.vdnn.paper_networks import GIB, SIX  # noqa: E402
from buddysim.sweep.cached_results import SavedResults  # noqa: E402

KINDS = ("peak", "average")
DOCUMENT = ROOT / "docs" / "validation" / "training-papers.md"


def compare(training: SavedResults) -> list[PaperComparison]:
    """Compare every number of the papers with the simulated one."""
    functions = simulation_functions()
    return [PaperComparison(value, functions[id](training)) for id, value in reported_values(DOCUMENT.name).items()]


def document(comparisons: Sequence[PaperComparison], training: SavedResults) -> str:
    """Return docs/validation/training-papers.md."""
    return wrap_markdown("\n".join(lines(comparisons, training))) + "\n"


def lines(comparisons: Sequence[PaperComparison], training: SavedResults) -> Iterator[str]:
    counts = Counter(one.status for one in comparisons)
    yield HEAD.strip().format(
        counts="\n".join(f"| {status} | {counts[status]} |" for status in STATUSES if counts[status]),
        backward=backward_unused(training),
        behind_relu=mean_ratio(BEHIND_RELU),
        stated_ratio=mean_ratio(REPORTED),
        **counted(training),
        overfeat=mfr("OverFeat", "gist-base", "dynamic"),
        software=mfr("AlexNet", lossy("AlexNet"), "dynamic", False),
        inception=run("Inception", "gist-base").footprint_bytes / GIB,
        stashed=stashed_percent("AlexNet"),
        networks=", ".join(f"{label.partition(' (')[0]}: `{name}`" for label, name, _ in SIX[:4]),
    )
    yield ""
    yield from not_reproduced(comparisons)
    sections = [(paper.TITLE, paper.TITLE) for paper in paper_folders(DOCUMENT.name)]
    for title, prefix in (*sections, ("Derived from the papers", "derived")):
        ones = [one for one in comparisons if one.reported.where.startswith(prefix)]
        yield ""
        yield f"## {title}"
        yield ""
        yield "| what | where | paper | simulated | error | status |"
        yield "|---|---|--:|--:|--:|---|"
        yield from (row(one, prefix) for one in ones if one.status not in (INPUT, NOT_REPRODUCED, OTHER_TRAINING))
        for status, head in ((INPUT, "Inputs"), (OTHER_TRAINING, "Properties of another training")):
            rows = [one for one in ones if one.status == status]
            if rows:
                yield ""
                yield f"{head}:"
                yield ""
                yield "| what | where | paper | simulated |"
                yield "|---|---|--:|--:|"
                yield from (short_row(one, prefix) for one in rows)


def not_reproduced(comparisons: Sequence[PaperComparison]) -> Iterator[str]:
    """Yield the numbers that are not reproduced, with their causes."""
    failed = [one for one in comparisons if one.status == NOT_REPRODUCED]
    yield "## Not reproduced"
    yield ""
    if not failed:
        yield "None."
        return
    causes, common = split_causes([one.simulated.cause for one in failed])
    yield "*Unpublished*: inputs of the number that no source has. Common causes:"
    yield ""
    yield from (f"- {text}" for text in common)
    yield ""
    yield "| what | where | paper | simulated | cause | unpublished |"
    yield "|---|---|--:|--:|---|---|"
    for one, cause in zip(failed, causes, strict=True):
        reported = one.reported
        cells = (
            reported.what, reported.where, with_unit(reported.value, reported.unit),
            with_unit(one.simulated.value, reported.unit), cause.replace("|", "/"), ", ".join(reported.needs) or "-",
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def counted(training: SavedResults) -> dict[str, object]:
    """Return savings by reading of the paper, and those with weights counted once throughout."""
    rows = []
    for name, reading in readings().items():
        total = outcome(training, "vgg19", 128, "baseline-p", reading)["memory.baseline_bytes"] / GIB
        cells = (
            " / ".join(f"{mean_saving(training, policy, kind, reading):.0f}" for kind in KINDS) for policy in POLICIES
        )
        rows.append(f"| {name} | {' | '.join(cells)} | {total:.1f} |")
    return {
        "policies": " | ".join(POLICIES.values()),
        "rules": "--:|" * len(POLICIES),
        "readings": "\n".join(rows),
        "stated": " | ".join(
            " / ".join(f"{reported_value(f'{policy}-{kind}'):.0f}" for kind in KINDS) for policy in POLICIES
        ),
        "growth": growth_gib(training),
        "once": {policy: weights_once(training, policy) for policy in POLICIES},
    }


def backward_unused(training: SavedResults) -> str:
    """Return the percentage of memory not in use (Fig. 1) if backward steps counted."""
    percentages = [
        100 * (1 - largest_backward_fraction(training.result(name, batch, "baseline-p"))) for _, name, batch in SIX
    ]
    return f"{min(percentages):.0f} to {max(percentages):.0f}"


def row(one: PaperComparison, paper: str) -> str:
    reported = one.reported
    errors = one.error
    if len(set(errors.split(", "))) == 1:
        errors = errors.split(", ")[0]
    cells = (
        reported.what, section(one, paper), with_unit(reported.value, reported.unit),
        with_unit(one.simulated.value, reported.unit), errors, one.status,
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def short_row(one: PaperComparison, paper: str) -> str:
    """Return a row without error and status; an input has one value."""
    reported = one.reported
    value, simulated = with_unit(reported.value, reported.unit), with_unit(one.simulated.value, reported.unit)
    return f"| {reported.what} | {section(one, paper)} | {value} | {'same' if simulated == value else simulated} |"


def section(one: PaperComparison, paper: str) -> str:
    """Return the section or figure of a number, without the name of the paper."""
    return one.reported.where.removeprefix("derived: ").removeprefix(f"{paper} ")


def with_unit(value: ReportedNumber | None, unit: str) -> str:
    return f"{amount(value)} {unit}".strip() if value is not None and not isinstance(value, str) else amount(value)


def amount(value: ReportedNumber | None) -> str:
    """Format a number with three significant digits."""
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


HEAD = """
# vDNN, cDMA, Gist and CSWAP papers

This page compares every number that the papers state, and some that follow from it, with the simulated number. Written
by `make validate` (`tools/validate_training.py`); a test compares it. `buddysim/papers/*/reported.toml` has the list
and the rule of each number. Values of single networks and notes are in the column `note` of
[validation.csv](validation.csv).

| status | numbers |
|---|--:|
{counts}

## Tolerances

| papers | quantity | tolerance |
|---|---|---|
| vDNN, cDMA | memory; fractions, savings and losses | 7 %; 7 percentage points |
| Gist, CSWAP | memory; percentages; other numbers | 7 %; 3 percentage points; 10 % |
| all | bounds ("at most", "more than"); arithmetic | hold; equal at the digits given |

- *Shape only* (Gist, CSWAP): the right sign, and within a factor of 2. For an MFR, the factor is that of the saving.
- *Inconclusive*: the number includes cuDNN 4's workspaces, which no source has, or the paper contradicts itself.
- *Not comparable: another training*: a property of the papers' ImageNet trainings, next to buddysim's own training.

Workspaces follow [one model](../explanation/layer-times.md) for every network, fitted to none of these numbers.

## Memory of vDNN's Fig. 11

Section V-A compares the memory in use with what the baseline provisions. It leaves four points open.

| point | taken | reason |
|---|---|---|
| baseline | the entire network; use counts feature layers | V-A and II-C say so; vDNN manages feature layers (III) |
| average | over layers | V-A refers to Fig. 5, which goes from layer to layer |
| weights in use | counted once; the baseline also has their gradients | Fig. 2 and Fig. 5 list one W; the paper's \
totals grow by 62.2 GiB from VGG-16 (32) to VGG-416 (32), simulated {growth[0]:.1f} with gradients and \
{growth[1]:.1f} without |
| FFT above 112 x 112 | never | no timing exists; an extrapolated rate is further from the published times |

The choices were made with the totals in view. Weights counted once in the baseline too would save: all(m)
{once[all-m]}, all(p) {once[all-p]}, conv(p) {once[conv-p]}, dyn {once[dyn]}.

Maximum / average saving in percent, mean of the six networks:

| points taken | {policies} | VGG-16 (128), GiB |
|---|{rules}--:|
{readings}
| the paper | {stated} | 15 (14 in the introduction) |

With all four points, every saving of V-A is reproduced. dyn misses by most, and the paper contradicts itself on it:

- V-C: dyn retains 97 % of the throughput on average and 82 % at worst. Five of six networks are left at 100 %, so they
  fit without offloading, as simulated.
- Introduction: the six networks that the baseline cannot train save at least 73 % of their average use. VGG-16 (128)
  does so with conv(p) (74 %), not without offloading (51 %).
- III-C decides: dyn first tries to go without offloading.

## Choices

These were made with the numbers in view. The strictest reading would leave more numbers not reproduced.

| number | choice |
|---|---|
| memory in use (vDNN, Fig. 1) | X, Y, weights and workspace of a forward step; backward steps \
would leave {backward} % unused |
| time in CONV layers | mean over the six networks' feature layers |
| gain of cDMA | 62 % zeros in every offloaded feature map but images (cDMA IV-B); behind ReLU alone the ratio would \
be {behind_relu:.2f}, not {stated_ratio:.2f} |
| transfers of cDMA | X of a concatenation is not offloaded (vDNN II-A, II-B, III-B); the scheme `vdnn-all` does |
| times of cDMA | link at 12.8 GB/s; the notes have 16 GB/s |
| densities of the first CONV, 16/336 | compared in points |
| sparsest layers, zlib's ratio by layout, its gain over ZVC | properties of a training |
| times of CSWAP | buddysim's OpenCL kernels in the coalesced layout; the notes have the chunked layout and the \
paper's codec times (`--codec-times paper`) |

CSWAP's coalesced ZVC takes 4 ms for 500 MB, the paper's 44 ms. Compressing everything then pays, and the advisor has
nothing to refuse. The chunked layout shows the paper's behaviour: its time falls over the grid and rises again. The
milliseconds of CSWAP's Fig. 12 contradict its Fig. 5.

## Gist's open points

Chosen before the first simulation: 62 % zeros in every ReLU and pooled feature map that SSDC takes, and FP8 for NiN.
Encodings take the time of their bytes at 336 GB/s. Chosen with the numbers in view, after CNTK's sources:

- **The input image** counts as a feature map and is encoded. CNTK's networks begin with a layer that subtracts a mean,
  and both passes read its output. It is a fifth of AlexNet's stashed feature maps. Without it, OverFeat's dynamic MFR
  is 1.29 (here {overfeat:.2f}) and AlexNet's with optimized software 3.85 (here {software:.2f}).
- **Inception** is Inception v3. The paper cites GoogLeNet, but writes of "hundreds of convolution layers". With 64
  samples, v3 takes {inception:.1f} GiB and `bn-inception` 2.8, of which 256 would fit. The number is an input.
- **What fits**: a momentum for every weight, the reader's images, and 11.81 of 12 GiB after an empty context. Without
  any one of the three, 128 samples of VGG16 would fit.
- **AlexNet** is CNTK's `AlexNet.ndl` of 2016, without LRN. DPR's formats imply that 69 % of its footprint are stashed;
  simulated {stashed:.0f} %.

CNTK's own allocator on CNTK's graph needs the simulated memory within 0.5 % for all five networks. It needs it within
4 % where stashed feature maps share nothing.

With dynamic allocation and no decoded copies, no footprint exceeds its baseline (a test). Of 1,188 combinations of
network, scheme and allocator, six exceed it by 0.2 to 1.9 %: in-place ReLU alone on `alexnet-caffe`, `bn-inception` and
`resnet20`. SSDC alone also does on `alexnet`, where pooled feature maps are denser than ReLU's.

## Machines and networks

Networks: {networks}. In brackets: the batch. Machine `titan-x`, link `pcie3` (12.8 GB/s). Libraries: `cudnn4` for
vDNN, `cudnn5` for cDMA (also on `titan-xp`) and for Gist with minibatches of 64. Use and performance count the
feature layers; what fits is decided on the whole network. A scheme that does not fit has the figures of a GPU
with more memory. The papers' GB of memory are GiB.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the document."""
    parser = argparse.ArgumentParser(prog="validate_training.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=DOCUMENT, metavar="FILE", help="default: in docs/")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if it is out of date")
    args = parser.parse_args(argv)
    try:
        training = SavedResults()
        comparisons = compare(training)
        text = document(comparisons, training)
        if args.check:
            same = args.output.exists() and args.output.read_text(encoding="utf-8") == text
            print(f"{args.output}: {'up to date' if same else 'out of date: run make validate'}")
            return 0 if same else 1
        write_both(args.output, text, (one.row for one in comparisons))
    except (BuddysimError, OSError) as error:
        print(f"validate_training.py: error: {error}", file=sys.stderr)
        return 2
    counts = Counter(one.status for one in comparisons)
    print(f"{args.output}: " + ", ".join(f"{count} {status}" for status, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
