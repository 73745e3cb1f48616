"""Writes the errors of operators' times: the page, and what each kind of prediction is off by.

python tools/operator_errors.py

It simulates every measured step that ships (two minutes), fits what whole iterations are fitted for, and compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from textwrap import wrap

import numpy as np

from buddysim.base.output import write_text
from buddysim.base.textfile import toml_text
from buddysim.machine.training import TrainingMachine
from buddysim.training.cost.evaluate import independent_networks, outside_iterations
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.operators.constants import OperatorConstants, fitted_constants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.fitting.evaluate import errors
from buddysim.training.cost.operators.fitting.iterations import fit_iterations
from buddysim.training.cost.operators.model import OperatorModel, same_chip
from buddysim.training.cost.operators.rows import FILES, MeasuredOperator, TimedStep, read_rows, read_steps
from buddysim.training.cost.operators.split import CHECKED_MODELS, FITTED_SOURCES, UNSHARED_GPUS
from buddysim.training.cost.operators.steps import (
    IterationConstants,
    StepParts,
    network_of_step,
    parts_of,
    step_ms,
)
from buddysim.training.cost.ranges import LEVEL, MeasuredRatio, covered, range_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "validation" / "operators.md"
DATA = ROOT / "buddysim" / "training" / "cost" / "data" / "iterations"
CLASSES_US = (0.0, 20.0, 100.0, 1000.0, float("inf"))
"""Bounds of the classes of size: times of rows, in microseconds."""

BEFORE_MIXED_PRECISION = "u39kun"
"""Source of half-precision iterations of PyTorch 0.3 (2017), without automatic mixed precision: shown, in no range."""

HEAD = """# Times of operators

This page has the errors of operators' times and of whole steps on recorded models. Written by
`python tools/operator_errors.py`; [Layer times](../explanation/layer-times.md) describes the model. Errors are
|predicted / measured - 1|, as medians over rows.

Rules were committed before the first fit (`buddysim/training/cost/operators/split.py`). A quarter of the shapes is for
checking, the same on every GPU. No constant that GPUs share has seen {gpus}. Of whole steps, {sources} are fitted
without {models}; every other source checks.

`buddysim machines measure --model` measures operators of a GPU; it has not been run on one.
"""


def groups() -> Mapping[tuple[str, str, str, str], list[MeasuredOperator]]:
    """Return the rows that ship by file, GPU, name and source."""
    by_group: dict[tuple[str, str, str, str], list[MeasuredOperator]] = {}
    for file in FILES:
        for row in read_rows(file):
            by_group.setdefault((file, row.gpu, row.name, row.source), []).append(row)
    return dict(sorted(by_group.items()))


def operator_lines(figures: Mapping[str, GpuFigures]) -> Iterator[str]:
    """Yield the table of operators."""
    yield "## Operators"
    yield ""
    yield (
        "Columns of times are checked rows by size. *Left out*: no constants of this chip; those of a neighbour, all "
        "rows of the GPU count; what GPUs share is as it is."
    )
    yield ""
    yield (
        "| kind | GPU | name | source | rows, checked | seen | **checked** | 90 % | under 20 us | to 100 us | to 1 ms "
        "| longer | left out |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    fitted = fitted_constants()
    for (file, gpu, name, source), rows in groups().items():
        own = fitted.get(gpu, OperatorConstants(gpu))
        seen, checked = ([row for row in rows if row.checks == flag] for flag in (False, True))
        others = {machine: one for machine, one in fitted.items() if not same_chip(machine, gpu)}
        inside, outside = (errors(figures[gpu], file, part, own, fitted) if part else None for part in (seen, checked))
        away = errors(figures[gpu], file, rows, own, others)
        if outside is None:
            continue
        times = np.array([row.us for row in checked])
        cells = [_median(inside), f"**{_median(outside)}**", f"{100 * np.nanquantile(abs(outside), 0.9):.0f}%"]
        for low, high in pairwise(CLASSES_US):
            cells.append(_median(outside[(times >= low) & (times < high)]))
        yield (
            f"| {file} | {gpu} | {name} | {source or 'a'} | {len(rows)}, {len(checked)} | "
            + " | ".join([*cells, _median(away)])
            + " |"
        )


def _median(values: np.ndarray[tuple[int], np.dtype[np.float64]] | None) -> str:
    if values is None or not np.isfinite(values).any():
        return "-"
    return f"{100 * np.nanmedian(abs(values)):.1f}%"


def step_lines(steps: Sequence[TimedStep], parts: Sequence[StepParts], constants: IterationConstants) -> Iterator[str]:
    """Yield the tables of whole steps."""
    ratios: dict[tuple[str, str, str], list[float]] = {}
    misses = []
    for step, part in zip(steps, parts, strict=True):
        ratio = step_ms(step, part, constants) / step.ms
        ratios.setdefault((step.source, step.gpu, "fitted" if step.fitted else "checks"), []).append(ratio)
        if abs(ratio - 1) > 0.25:
            misses.append((step, ratio))
    yield "## Whole steps"
    yield ""
    older = "; ".join(
        f"{gpu} {one['forward']:.2f} forward, {one['backward']:.2f} backward" for gpu, one in constants.flash1.items()
    )
    yield (
        "Predicted over measured time. Parts are summed without an allocator. Collectives of full sharding take "
        f"{constants.communication:.2f} of their time from kernels. LLM Foundry has FlashAttention 1. Its time "
        f"over that of version 2: {older}. Heads smaller than 128 take {constants.flash1_small_heads:.2f} of that."
    )
    yield ""
    yield "| source | GPU | part | steps | median | median error | smallest | largest |"
    yield "|---|---|---|---|---|---|---|---|"
    for (source, gpu, flag), some in sorted(ratios.items()):
        middle = median(abs(ratio - 1) for ratio in some)
        yield (
            f"| {source} | {gpu} | {flag} | {len(some)} | {median(some):.2f} | {100 * middle:.1f}% | {min(some):.2f} | "
            f"{max(some):.2f} |"
        )
    yield ""
    away = [abs(ratio - 1) for (_, _, flag), some in ratios.items() if flag == "checks" for ratio in some]
    near = sum(error <= 0.25 for error in away)
    yield f"Of {len(away)} steps in no fit, the median error is {median(away):.1%}; {near} are within 25 %."
    yield ""
    yield "Steps off by more than 25 %:"
    yield ""
    yield "| step | model | tokens, batch | predicted / measured |"
    yield "|---|---|---|---|"
    for step, ratio in misses:
        yield f"| {step.id} {step.part} | {step.model} | {step.tokens}, {step.batch} | {ratio:.2f} |"


def left_out_constants(steps: Sequence[TimedStep], parts: Sequence[StepParts], gpu: str) -> IterationConstants:
    """Return what is fitted to whole iterations without those of a chip, whose attention takes another GPU's."""
    inside = [(one, part) for one, part in zip(steps, parts, strict=True) if not same_chip(one.gpu, gpu)]
    constants = fit_iterations([one for one, _ in inside], [part for _, part in inside])
    other = next(iter(constants.flash1.values()))
    return replace(constants, flash1={**constants.flash1, gpu: other})


def step_ratios(
    steps: Sequence[TimedStep], parts: Sequence[StepParts], left: Sequence[StepParts], constants: IterationConstants
) -> Iterator[MeasuredRatio]:
    """Yield measured over predicted time of steps that nothing was fitted to, and of all without their chip."""
    without = {gpu: left_out_constants(steps, parts, gpu) for gpu in dict.fromkeys(step.gpu for step in steps)}
    for step, part, other in zip(steps, parts, left, strict=True):
        number_format = "fp32" if step.recipe == "fp32" else "half"
        source = f"{step.source} {step.model}"
        if not step.fitted:
            ratio = step.ms / step_ms(step, part, constants)
            yield MeasuredRatio(f"recorded-{number_format}-own", step.gpu, source, ratio)
        ratio = step.ms / step_ms(step, other, without[step.gpu])
        yield MeasuredRatio(f"recorded-{number_format}-neighbour", step.gpu, source, ratio)


def layer_ratios() -> Iterator[MeasuredRatio]:
    """Yield measured over modelled time of described networks, which are in no fit."""
    for one in outside_iterations():
        if one.network.startswith("bert"):
            yield MeasuredRatio("layers-language", one.machine, one.by, one.ms / one.modelled_ms)
        elif one.precision == "fp32":
            basis = "own" if one.calibrated else "neighbour"
            yield MeasuredRatio(f"layers-fp32-{basis}", one.machine, one.by, one.ms / one.modelled_ms)
        elif one.by != BEFORE_MIXED_PRECISION:
            yield MeasuredRatio("layers-half", one.machine, one.by, one.ms / one.modelled_ms)
    for network in independent_networks():
        basis = "neighbour" if network.machine == "k40" else "own"
        modelled = network.modelled_forward_ms + network.modelled_backward_ms
        ratio = (network.forward_ms + network.backward_ms) / modelled
        yield MeasuredRatio(f"layers-fp32-{basis}", network.machine, "cnn-benchmarks", ratio)


def kinds(ratios: Sequence[MeasuredRatio]) -> dict[str, dict[str, float]]:
    """Return the error of each kind of prediction."""
    by_kind: dict[str, list[MeasuredRatio]] = {}
    for one in ratios:
        by_kind.setdefault(one.kind, []).append(one)
    errors_of_kinds = {}
    for kind, some in sorted(by_kind.items()):
        low, high = range_of([one.ratio for one in some])
        away = median(abs(1 / one.ratio - 1) for one in some)
        bounds = {"low": round(low, 4), "high": round(high, 4)}
        errors_of_kinds[kind] = {"rows": len(some), "median": round(away, 4), **bounds}
    return errors_of_kinds


def kind_lines(by_kind: Mapping[str, Mapping[str, float]], ratios: Sequence[MeasuredRatio]) -> Iterator[str]:
    """Yield the tables of kinds of prediction, and of what ranges hold for sources that they have not seen."""
    yield "## Kinds of prediction"
    yield ""
    yield (
        "`time_min_ms` and `time_max_ms` are `time_ms` times these two, of rows that were never fitted. They lie "
        f"around the median of measured over predicted time, by the {LEVEL:.0%} quantile of deviations from it. "
        "*layers-half*: described CONV networks on tensor cores. *neighbour*: without any constant of the chip. "
        f"Half precision of PyTorch 0.3 ({BEFORE_MIXED_PRECISION}) is left out: it has no automatic mixed precision. "
        "It takes two to three times as long as DeepBench's timings of the same shapes."
    )
    yield ""
    yield "| kind | rows | median error | from | to |"
    yield "|---|---|---|---|---|"
    for kind, one in by_kind.items():
        yield f"| {kind} | {one['rows']:.0f} | {100 * one['median']:.1f}% | {one['low']:.2f} | {one['high']:.2f} |"
    yield ""
    yield (
        "Test of the ranges: each model of each source is left out in turn. Its range comes from the others, and its "
        "rows are counted. Generations: older (before 2020), Ampere, Hopper."
    )
    yield ""
    yield "| kind | generation | rows | inside | median half-width |"
    yield "|---|---|---|---|---|"
    for (kind, generation), held in covered(ratios).items():
        yield f"| {kind} | {generation} | {held.rows} | {held.inside:.0%} | {100 * held.half_width:.1f}% |"
    yield ""
    yield from class_lines(ratios)
    yield "One chip left out of every fit, whole steps of its GPUs:"
    yield ""
    yield "| GPU | format | rows | median predicted / measured | median error |"
    yield "|---|---|---|---|---|"
    left: dict[tuple[str, str], list[float]] = {}
    for row in ratios:
        if row.kind.startswith("recorded") and row.kind.endswith("neighbour"):
            left.setdefault((row.gpu, row.kind.split("-")[1]), []).append(1 / row.ratio)
    for (gpu, number_format), some in sorted(left.items()):
        away = median(abs(ratio - 1) for ratio in some)
        yield f"| {gpu} | {number_format} | {len(some)} | {median(some):.2f} | {100 * away:.1f}% |"


def class_lines(ratios: Sequence[MeasuredRatio]) -> Iterator[str]:
    """Yield what the ranges hold by generation of GPU, over all kinds of a GPU's own timings."""
    own: dict[str, list[float]] = {}
    for (kind, generation), held in covered(ratios).items():
        if not kind.endswith("neighbour"):
            own.setdefault(generation, []).extend([held.rows, held.inside * held.rows])
    parts = [
        f"{generation} {sum(counts[1::2]) / sum(counts[::2]):.0%} of {sum(counts[::2]):.0f} rows"
        for generation, counts in sorted(own.items())
    ]
    yield f"Over all kinds but neighbours', the ranges hold: {', '.join(parts)}."
    yield ""


CAUSES = """## Rows that miss, and why

- **mpt-760m, 512 and 1,024 tokens, A100**: 0.74 and 0.79. Measured, a step of as many tokens takes longer with shorter
  sequences (1.65 and 1.67 s, 1.52 s with 2,048), against all other models.
- **mpt-30b, 8,192 tokens**: 0.76 and 0.81. Measured, twice the tokens take 2.6 (H100) and 2.8 times (A100) as long.
- **tinyllama, litgpt-thunder-003 and 004**: 0.75 and 0.85. Two rows with equal statements differ by a quarter.
- **bert-large in training, H100**: 0.68 to 0.97. NeuSight empties the allocator before each pass, so the pass allocates
  all memory from the driver anew. The same shape in evaluation is predicted within 4 %.
- **products, L4**: 12.7 %. At 72 W its clock moves: rows of 3 to 10 ms reach 8.3 TFLOP/s at the median, a tenth of them
  11.5; rows of 10 to 100 ms 7.3, a tenth 9.6. No other GPU has as little power, so left out it is 63 % off.
- **products, L40S**: 17 % below 48 MB of operands, 6 to 7 % above 96 MB. Its L2 cache has 96 MB, and replayed kernels
  find their operands there in part; one constant says how much faster they move.
- **attention, L40S**: 12 to 23 % below 129 tokens and with many heads of keys, 4 % of bias from 1,024 tokens on. Its
  rows are of a kernel for both prefill and decode, whose blocks of short sequences are not 128 queries.
- **small products between events** (A100, source c): the host's part of a call is in them.
- **A100 predicted from H100 and A40**: 1.29. Attention of version 1 is in all these steps, and the H100's ratio to
  version 2 is not the A100's.
"""


def _wrapped(text: str) -> str:
    paragraphs = text.split("\n\n")
    return "\n\n".join(one if one.startswith(("|", "#", "- ")) else "\n".join(wrap(one, 120)) for one in paragraphs)


def pages() -> dict[Path, str]:
    """Compare everything; return the texts of the files that it makes, by their path."""
    steps = read_steps()
    costs: dict[tuple[str, bool, bool], CostModel] = {}

    def cost_of(step: TimedStep, left_out: bool) -> CostModel:
        key = (step.gpu, step.recipe == "fp32", left_out)
        if key not in costs:
            costs[key] = CostModel.load(step.gpu, precision="fp32" if key[1] else "bf16")
            if left_out:
                others = {name: one for name, one in fitted_constants().items() if not same_chip(name, step.gpu)}
                costs[key].operators = OperatorModel(costs[key].machine, fitted=others)
        return costs[key]

    parts, left = [], []
    for step in steps:
        network = network_of_step(step)
        parts.append(parts_of(step, network, cost_of(step, False)))
        left.append(parts_of(step, network, cost_of(step, True)))
    constants = fit_iterations(steps, parts)
    ratios = [*step_ratios(steps, parts, left, constants), *layer_ratios()]
    by_kind = kinds(ratios)
    names = sorted({row.gpu for file in FILES for row in read_rows(file)})
    figures = {name: GpuFigures.of(TrainingMachine.load(name)) for name in names}
    head = HEAD.format(
        gpus=" and ".join(UNSHARED_GPUS), sources=" and ".join(FITTED_SOURCES), models=" and ".join(CHECKED_MODELS)
    )
    lines = [
        head,
        *operator_lines(figures),
        "",
        *step_lines(steps, parts, constants),
        "",
        CAUSES,
        *kind_lines(by_kind, ratios),
    ]
    return {
        DATA / "fitted.toml": toml_text(asdict(constants)),
        DATA / "errors.toml": toml_text(by_kind),
        PAGE: "\n".join(map(_wrapped, lines)) + "\n",
    }


def main() -> int:
    """Write the files."""
    for path, text in pages().items():
        write_text(path, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
