"""Makes docs/validation/buddy-paper.md and training-papers.md from the table of all comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from buddysim.base.markdown import wrap_markdown
from buddysim.base.textfile import LARGEST_TABLE, read_json
from buddysim.base.validation_table import FILE, page_rows
from buddysim.papers.buddy.buddy_study import paper_names
from buddysim.papers.causes import split_causes
from buddysim.papers.reported_values import paper_folders, reported_value, reported_values
from buddysim.papers.vdnn.memory_usage import POLICIES
from buddysim.papers.vdnn.paper_networks import SIX
from buddysim.report.validation_page import amount
from buddysim.workloads.workload_registry import REGISTRY

FOLDER = Path(__file__).parents[2] / "docs" / "validation"
INPUT, FAILED, OTHER_TRAINING = "an input", "not reproduced", "not comparable: another training"
#: Marks of a figure's cells.
MARKS = {"shape only": "~", FAILED: "!"}
_DIGITIZED = "Buddy, ISCA version, "

Row = Mapping[str, str]


def buddy_page() -> str:
    """Return docs/validation/buddy-paper.md."""
    return _page("\n".join(_buddy_lines(page_rows(FOLDER / FILE, "buddy-paper"), _figures("buddy-paper"))))


def training_page() -> str:
    """Return docs/validation/training-papers.md."""
    return _page("\n".join(_training_lines(page_rows(FOLDER / FILE, "training-papers"), _figures("training-papers"))))


def _page(text: str) -> str:
    return wrap_markdown(text) + "\n"


def _figures(page: str) -> dict[str, Any]:
    """Return the figures of a page's text, which its tool stores next to the table."""
    figures: dict[str, Any] = read_json(FOLDER / f"{page}.json", "figures of a page", LARGEST_TABLE)
    return figures


def _buddy_lines(rows: Sequence[Row], figures: Mapping[str, Any]) -> Iterator[str]:
    of_text = [row for row in rows if not row["subject"].startswith(_DIGITIZED)]
    digitized = [row for row in rows if row["subject"].startswith(_DIGITIZED)]
    counts = [Counter(row["status"] for row in part) for part in (of_text, digitized)]
    yield BUDDY_HEAD.strip().format(
        counts="\n".join(f"| {name} | {counts[0][name]} | {counts[1][name]} |" for name in counts[0] | counts[1]),
        **figures,
    )
    yield from _failed_lines(of_text, "buddy-paper.md")
    yield from _table_lines("Text", of_text)
    for subject, group in groupby(digitized, lambda row: row["subject"]):
        yield from ("", f"## {subject.removeprefix(_DIGITIZED)} of the ISCA version", "")
        yield from _figure_lines([*group])
    yield from ("", "## Memory of each workload", "")
    yield from (f"- **{paper}** (`{name}`): {REGISTRY.find(name).WHY}" for name, paper in paper_names().items())


def _training_lines(rows: Sequence[Row], figures: Mapping[str, Any]) -> Iterator[str]:
    counts = Counter(row["status"] for row in rows)
    yield TRAINING_HEAD.strip().format(
        counts="\n".join(f"| {status} | {count} |" for status, count in counts.items()),
        networks=", ".join(f"{label.partition(' (')[0]}: `{name}`" for label, name, _ in SIX[:4]),
        policies=" | ".join(POLICIES.values()),
        rules="--:|" * len(POLICIES),
        stated=" | ".join(
            " / ".join(f"{reported_value(f'{policy}-{kind}'):.0f}" for kind in ("peak", "average"))
            for policy in POLICIES
        ),
        **figures | {"readings": "\n".join(f"| {' | '.join(cells)} |" for cells in figures["readings"])},
    )
    yield from _failed_lines(rows, "training-papers.md")
    for title in (*(paper.TITLE for paper in paper_folders("training-papers.md")), "derived"):
        yield from _table_lines(title, [row for row in rows if row["comparison"] == title])


def _failed_lines(rows: Sequence[Row], document: str) -> Iterator[str]:
    """Yield the numbers that are not reproduced, with their causes and the inputs that nobody published."""
    failed = [row for row in rows if row["status"] == FAILED]
    needs = {(value.where, value.what): value.needs for value in reported_values(document).values()}
    causes, common = split_causes([row["note"] for row in failed])
    yield from ("", "## Not reproduced", "")
    yield from ("*Unpublished*: inputs of the number that no source has. Common causes:", "")
    yield from (f"- {text}" for text in common)
    yield from ("", "| what | where | paper | simulated | cause | unpublished |", "|---|---|--:|--:|---|---|")
    for row, cause in zip(failed, causes, strict=True):
        unpublished = ", ".join(needs.get((row["subject"], row["quantity"]), ())) or "-"
        yield f"| {' | '.join((*_values(row), cause.replace('|', '/') or '-', unpublished))} |"


def _table_lines(title: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the numbers of a paper: those compared, then inputs and properties of another training."""
    yield from ("", f"## {title[:1].upper() + title[1:]}", "")
    yield from ("| what | where | paper | simulated | error | status |", "|---|---|--:|--:|--:|---|")
    for row in rows:
        if row["status"] not in (INPUT, FAILED, OTHER_TRAINING):
            yield f"| {' | '.join((*_values(row), _error(row), row['status']))} |"
    for status, head in ((INPUT, "Inputs"), (OTHER_TRAINING, "Properties of another training")):
        own = [row for row in rows if row["status"] == status]
        if own:
            yield from ("", f"{head}:", "", "| what | where | paper | simulated |", "|---|---|--:|--:|")
            yield from (f"| {' | '.join(_values(row))} |" for row in own)


def _figure_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a row for each workload, group or compressor: simulated (reported) values of its bars."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        name, _, column = row["quantity"].partition(": ")
        simulated = amount(row["simulated"], "") if row["simulated"] else row["status"]
        mark = MARKS.get(row["status"], "")
        cells.setdefault(name, {})[column] = f"{simulated} ({amount(row['reference'], '')}){mark}"
    columns = list(dict.fromkeys(column for own in cells.values() for column in own))
    yield f"| simulated (paper) | {' | '.join(columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    yield from (f"| {name} | {' | '.join(own.get(one, '') for one in columns)} |" for name, own in cells.items())


def _values(row: Row) -> tuple[str, str, str, str]:
    unit = row["unit"]
    return row["quantity"], row["subject"], amount(row["reference"], unit), amount(row["simulated"], unit)


def _error(row: Row) -> str:
    return f"{float(row['error_fraction']):+.1%}".replace("%", " %") if row["error_fraction"] else "-"


BUDDY_HEAD = """
# Buddy Compression paper

This page compares every number that the paper reports in its text, and every bar and point of the figures of its ISCA
2020 version, with the simulated number. It is made from what `tools/validate_buddy.py` stores, from results of version
{version} of the model (`make figures`, `make validate-buddy`). The list of numbers and rules
(`buddysim/papers/buddy/reported.toml`) was committed before the first simulation. Values of single workloads and
notes are in the column `note` of [validation.csv](validation.csv).

Workloads at scale {scale}: {available}.

| status | of the text | of the figures |
|---|--:|--:|
{counts}

*Reproduced*: within 10 %, percentages within 3 points. *Shape only* (in figures: ~): the right sign and within a factor
of 2. !: not reproduced. *Not run*: the store has no result.

Targets are chosen on the input `profile`; everything is counted on the input `replay`. Ratios, size classes, targets
and overflow are those of the data values of buddysim's workloads. Times are simulated, of one step. SPEC ACCEL's
programs and inputs and the networks' trainings are not published. No workload's data was changed to approach a number.
"""

TRAINING_HEAD = """
# vDNN, cDMA, Gist and CSWAP papers

This page compares every number that the papers state, and some that follow from it, with the simulated number. It is
made from what `tools/validate_training.py` stores. `buddysim/papers/*/reported.toml` has the list and the rule of each
number. Values of single networks and notes are in the column `note` of
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
totals grow by 62.2 GiB from VGG-16 (32) to VGG-416 (32), simulated {growth[0]} with gradients and \
{growth[1]} without |
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
be {behind_relu}, not {stated_ratio} |
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
  is 1.29 (here {overfeat}) and AlexNet's with optimized software 3.85 (here {software}).
- **Inception** is Inception v3. The paper cites GoogLeNet, but writes of "hundreds of convolution layers". With 64
  samples, v3 takes {inception} GiB and `bn-inception` 2.8, of which 256 would fit. The number is an input.
- **What fits**: a momentum for every weight, the reader's images, and 11.81 of 12 GiB after an empty context. Without
  any one of the three, 128 samples of VGG16 would fit.
- **AlexNet** is CNTK's `AlexNet.ndl` of 2016, without LRN. DPR's formats imply that 69 % of its footprint are stashed;
  simulated {stashed} %.

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
