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
from buddysim.papers.cdma.performance_numbers import BEHIND_RELU, REPORTED, mean_ratio  # noqa: E402
from buddysim.papers.comparison_table import write_both  # noqa: E402
from buddysim.papers.gist.mfr import stashed_percent  # noqa: E402
from buddysim.papers.gist.paper_networks import lossy, mfr, run  # noqa: E402
from buddysim.papers.paper_comparison import NOT_REPRODUCED, STATUSES, PaperComparison  # noqa: E402
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
    failed = [one for one in comparisons if one.status == NOT_REPRODUCED]
    yield ""
    yield "## Not reproduced"
    yield ""
    if not failed:
        yield "None."
    for one in failed:
        reported = one.reported
        yield (
            f"- **{reported.what}** ({reported.where}): {with_unit(reported.value, reported.unit)}, "
            f"simulated {amount(one.simulated.value)}. {sentence(one.simulated.cause)}{needed(reported.needs)}"
        )
    sections = [(paper.TITLE, paper.TITLE) for paper in paper_folders(DOCUMENT.name)]
    for title, prefix in (*sections, ("Derived from the papers", "derived")):
        yield ""
        yield f"## {title}"
        yield ""
        yield "| what | where | paper | simulated | error | status | notes |"
        yield "|---|---|--:|--:|--:|---|---|"
        for one in comparisons:
            if one.reported.where.startswith(prefix):
                yield row(one)


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


def row(one: PaperComparison) -> str:
    reported = one.reported
    notes = "; ".join(note for note in (one.simulated.note, reported.note) if note)
    cells = (
        reported.what, reported.where.removeprefix("derived: "), with_unit(reported.value, reported.unit),
        with_unit(one.simulated.value, reported.unit), one.error, one.status, notes.replace("|", "/"),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


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


def needed(inputs: Sequence[str]) -> str:
    """Return a sentence about the unpublished inputs of a number."""
    return f" Needs {' and '.join(inputs)} that nobody published." if inputs else ""


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


HEAD = """
# Compared with the papers: vDNN, cDMA, Gist and CSWAP

Written by `make validate` (`tools/validate_training.py`); a test keeps it up to date. Every number that the papers
state in their text, and some that follow from it (`buddysim/papers/*/reported.toml`), with the simulated value.

| status | numbers |
|---|--:|
{counts}

Tolerances, set before comparing: memory within 7 % of the stated number; shares, savings and losses within 7
percentage points; bounds ("at most", "more than") hold; arithmetic is equal at the digits given. A number that misses
its tolerance is inconclusive if it includes cuDNN 4's workspaces, which are published nowhere, or if the paper
contradicts itself on it. Our workspaces come from one model for every network, fitted to none of these numbers ([cost
model](cost-model.md)). Gist's and CSWAP's numbers, by rules of their own: memory within 7 %, other numbers within 10 %,
percentages within 3 points; what misses that but has the right sign and is within a factor of 2 (of an MFR: what it
saves) is "shape only". Properties of the papers' ImageNet trainings (82,000 to 300,000 iterations) are shown with
those of our own training, without a status.

## vDNN's Fig. 11, and how memory is counted

Section V-A compares the memory in use with what the baseline provisions. Four points are open. What is taken, and why:

1. **The baseline is that of the entire network**, as V-A says of what it provisions (and II-C). vDNN manages, and its
   use is counted over, the feature layers (III): the classification layers stay as they are in Torch (IV-A).
2. **Averages are over layers**: V-A refers to Fig. 5, where memory in use changes from layer to layer.
3. **Weights count once in what is in use**: Fig. 2's caption lists W, X, two buffers for dX and dY and the workspace,
   Fig. 5 one W for each layer. The baseline has the weights' gradients too: between VGG-16 (32) and VGG-416 (32), whose
   largest workspace is the same, the paper's totals grow by 62.2 GiB, the simulated ones by {growth[0]:.1f} with them
   and by {growth[1]:.1f} without. (With weights once in the baseline as well, as Fig. 2 read alone has it, all(m) saves
   {once[all-m]}, all(p) {once[all-p]}, conv(p) {once[conv-p]}, dyn {once[dyn]}.)
4. **No FFT on feature maps larger than 112 x 112**, at any batch: we have no timing of one, and with a rate
   extrapolated to 224 x 224, VGG-16 and VGG-19 in Torch with cuDNN 4 are faster, further away from the published times
   (never fitted; [cost model](cost-model.md)). Extrapolated, it was the fastest algorithm of `conv1_2` at batch 64 and
   128, and didn't fit at 256. Neither Torch's cuDNN 4 layers nor the paper bound the workspace. The choice was made
   with the totals in view.

Maximum / average saved, in per cent, mean of the six networks, by how many of these points are taken:

| points taken | {policies} | VGG-16 (128), GiB |
|---|{rules}--:|
{readings}
| the paper | {stated} | 15 (14 in the introduction) |

With all four, every saving that V-A states is reproduced. dyn is off most, 42 / 66 for 49 / 69, and the text says two
things of it that don't go together. By V-C, dyn keeps 97 % of the throughput on average and 82 % at worst (VGG-16
(256)): that leaves 100 % for each of the other five, as in our model, where they fit without offloading, VGG-16 (128)
with 10.5 of 12 GiB (with the paper's 15 GiB in all it would be 11.3). With conv(p) for VGG-16 (128), dyn saves 46 / 70,
but loses 5 % of the time there, and the mean is 96 %. By the introduction, the six networks that the baseline can't
train save at least 73 % of their average use, which VGG-16 (128) does with conv(p) (74) and not without offloading
(51). The steps of III-C decide: going without is tried first, and taken where it fits. What is left of the maximum, 7
points, 3 with conv(p), depends on workspaces that are published nowhere.

## Choices

Where the papers leave it open, these were made with their numbers in view:

- The fraction of memory in use (Fig. 1) counts X, Y, weights and workspace of a forward step, as Fig. 5 does. Backward
  steps, with dX and dY, would leave only {backward} % unused.
- The fraction of time in CONV layers is the mean over the six networks' feature layers.
- The gain of cDMA is computed with 62 % zeros in every offloaded feature map but the input images, pooled ones too: the
  paper states it as the average over entire networks (cDMA IV-B), and a ratio of 2.6 for all that is offloaded (VII-A).
  With 62 % behind ReLU alone, pooled feature maps are denser, and the mean ratio is {behind_relu:.2f} instead of
  {stated_ratio:.2f}. The notes have both.
- In cDMA's times, X of a concatenation isn't offloaded: neither paper counts it among the layers (vDNN II-A, cDMA
  II-A), a join is a dependency between layers (vDNN II-B), and what is offloaded are X of CONV and POOL (vDNN III-B);
  the joined feature map is X of the next layer. The text can be read otherwise: "all" is said of all layers (vDNN
  III-C, cDMA VI), and the networks are Caffe's, whose concatenation is a layer that copies. The scheme `vdnn-all` takes
  it so, as a layer of the network that it is given, and vDNN's memory figures with it. The notes have cDMA's numbers
  for it, most of which are further off.
- cDMA's times are those at the link's effective rate, 12.8 GB/s; the notes have those at its peak rate, 16 GB/s.
- That FC layers are the sparsest, zlib's ratio by layout, and how much faster than ZVC it is, count as properties of a
  training.
- The first CONV's density is compared in points (its shape, close to a half, holds either way), and so is 16/336.

- CSWAP's times are those of our own OpenCL kernels, replayed on simulated GPUs, in the layout in which neighbouring
  work-items read neighbouring words. They make ZVC nearly free: 500 MB take 4 ms at the best launch where the paper has
  44, so that compressing everything pays and the advisor has nothing to refuse. The other layout, a stream of its own
  for each work-item, shows the paper's world: over the grid its time falls, and rises again once the streams thrash L1
  and L2. The notes have both, and the results with codec times through the three points that the paper states of
  Fig. 5 (`--codec-times paper`). Its milliseconds of Fig. 12 contradict Fig. 5. Its sparsities are of another training
  than those simulated.

With the strictest reading of each of these and of the four points above, more numbers would count as not reproduced.

## Gist: what was chosen before measuring

`buddysim/papers/gist/reported.toml` was written before anything was measured, with these choices: 62 % zeros in every
ReLU and pooled feature map that SSDC takes, for all networks (cDMA IV-B; the notes sweep it by 10 points); Inception is
`bn-inception`, NiN's format FP8; the input image is neither counted nor encoded; times of encodings are those of their
bytes at 336 GB/s. Changed afterwards: the rules of two entries (cuDNN's version is not a number; "one-ninth"
contradicts the "16x" next to it), fractions of ReLU outputs no longer include pooled feature maps, as the text says
"ReLU outputs", and, with the numbers in view, for what CNTK's sources of 2016 to 2018 say (microsoft/CNTK):

- **The input image counts as a feature map and is encoded.** CNTK's networks for ImageNet begin with a layer that
  subtracts a mean (`AlexNet_ImageNet.cntk`, `VGG16_ImageNet.cntk`, `InceptionV3.bs`); its output is what the first CONV
  layer reads in both passes, and the allocator never gives it back (`ComputationNetworkEvaluation.cpp` releases values
  of what has a gradient). Of AlexNet's stashed feature maps it is a fifth. Without it: Binarize 1.53, FP16 1.05, FP8
  1.24, with DPR 2.40, dynamic allocation 1.31 on average; OverFeat's 1.29 (now {overfeat:.2f}) and AlexNet's 3.85 with
  optimized software (now {software:.2f}) were nearer, and with DPR AlexNet was the most of the five, as the paper has
  it.
- **Inception is Inception v3.** The paper cites GoogLeNet alone, but has it among networks of "hundreds of convolution
  layers" (II), and trains it in CNTK; CNTK's examples have v3 at 299 x 299 in addition to `bn-inception`, and v3 is
  what the same groups train in CNTK in TBD (the paper's reference 51). With 64 samples v3 takes {inception:.1f} GiB,
  `bn-inception` 2.8, of which 256 would fit. That number chose the network: it is an input now, not a test. With
  `bn-inception`: 97.0 % of feature maps, vDNN 42.4 % slower.
- **What fits**: CNTK's learner keeps a momentum for every weight (`SGD.cpp`: smoothedGradients), the reader its images
  in addition to those without the mean, and CUDA offers 11.92 of the 12 GiB of a GTX Titan X (12,799,574,016 B), an
  empty context taken off 11.81. Without any one of the three, 128 samples of VGG16 would fit, by 0.04 to 0.5 GiB.

CNTK's allocator (`MatrixPool.h`: requests sorted by size, the smallest free one of those that exist) on CNTK's graph,
with biases as layers of their own, needs the simulated memory within 0.5 % for all five networks, within 4 % where
stashed feature maps share nothing. Which AlexNet was trained stays open: the example of 2017 has LRN before the
pooling, where Binarize would gain next to nothing; that of 2016 (`AlexNet.ndl`) has none and is `alexnet`, but for one
row and column of `conv1`. Both formats of DPR imply that 69 % of the paper's footprint of AlexNet are stashed
feature maps; the simulated one has {stashed:.0f} %.

Without decoded copies, and with dynamic allocation, no footprint of the networks here exceeds its baseline's (a test;
at random, only networks of a layer or two do, while the image's code is made: unlike all other feature maps it has no
gradient that takes more later). Of 1,188 combinations of 18 networks, schemes and allocators, six exceed the baseline
of the same allocator: in-place ReLU alone, where stashed feature maps share nothing, on `alexnet-caffe`, `bn-inception`
and `resnet20`, with and without copies (0.2 to 1.9 %: groups formed by size pack other sizes differently). SSDC alone
does so on `alexnet` where pooled feature maps are denser than ReLU's: decoded copies, consumed immediately, need more
than the codes save.

Networks: {networks}. In brackets: the batch. Machine `titan-x`, link `pcie3` (12.8 GB/s), `cudnn4` for vDNN;
`cudnn5`, `titan-x` and `titan-xp` for cDMA; `cudnn5` for Gist, minibatch 64. Memory in use and performance count the
feature-extraction layers, against `baseline-p` of the entire network and the oracle; what fits is decided on the whole
network. Where a scheme doesn't fit, its figures are those of a GPU with more memory. The papers' GB of memory are
GiB.
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
