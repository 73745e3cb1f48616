"""Errors of operators' times: docs/validation/operators.md, and what each kind of prediction is off by.

`python -m tools.operator_errors` stores the constants of whole iterations, the errors of kinds, and those of steps in
no fit in the table of all comparisons. `python -m tools.write_reference` makes the page.

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
from buddysim.base.validation_table import FILE, merged
from buddysim.machine.training import TrainingMachine
from buddysim.training.calibration.evaluate import errors
from buddysim.training.calibration.iterations import fit_iterations
from buddysim.training.calibration.steps import (
    IterationConstants,
    StepParts,
    iteration_constants,
    network_of_step,
    parts_of,
    step_ms,
)
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.operators.constants import OperatorConstants, fitted_constants
from buddysim.training.cost.operators.figures import POWER_EXPONENT, GpuFigures
from buddysim.training.cost.operators.model import OperatorModel, same_chip
from buddysim.training.cost.operators.rows import (
    ENGINES,
    FILES,
    MeasuredOperator,
    TimedStep,
    read_outside,
    read_rows,
    read_steps,
)
from buddysim.training.cost.operators.split import CHECKED_MODELS, FITTED_SOURCES, UNSHARED_GPUS
from buddysim.training.cost.ranges import GENERATIONS, LEVEL, OLDER, MeasuredRatio, covered, range_of
from buddysim.validation.comparison import HARDWARE, NO_TOLERANCE, rounded

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.layer_times.errors import independent_networks, outside_iterations  # noqa: E402

PAGE = "operators"
TABLE = ROOT / "docs" / "validation" / FILE
DATA = ROOT / "buddysim" / "training" / "cost" / "data" / "iterations"
CLASSES_US = (0.0, 20.0, 100.0, 1000.0, float("inf"))
"""Bounds of the classes of size: times of rows, in microseconds."""

BEFORE_MIXED_PRECISION = "u39kun"
"""Source of half-precision iterations of PyTorch 0.3 (2017), without automatic mixed precision: shown, in no range."""

NEAR = 0.25
"""Largest error of a step that is near its measured time."""

MIN_PAIRS = 20
"""Least pairs of products of which a spread is told, and least rows of which the nearest ones are."""

NEAREST = 3
"""Rows around a checked one, of nearest extents by their logarithms."""

NEWER_LIBRARY, TIMED_BEFORE = "5.1", ("titan-x", "titan-x-pascal")
"""Version of cuDNN with other kernels than 5.0, and GPUs whose timings agree with 5.0: another library's times."""

HEAD = """# Times of operators

This page has the errors of operators' times and of whole steps on recorded models. Written by
`python -m tools.write_reference`; [Layer times](../explanation/layer-times.md) describes the model. Errors are
|predicted / measured - 1|, as medians over rows.

Rules were committed before the first fit (`buddysim/training/cost/operators/split.py`). A quarter of the shapes is for
checking, the same on every GPU. No constant that GPUs share has seen {gpus}. Of whole steps, {sources} are fitted
without {models}; every other source checks.

Blocks of attention, tiles in fp32 and the sets of operands that rows use in turn were looked for in rows of l40s, t4
and p100, with the checked ones in view. They follow code of the kernels and of the benchmark, and names of kernels; no
constant was fitted for them.

Exchanged with neighbours, a card's rate follows its power: (limit / power at its peak rates) ^ {exponent}. The exponent
was chosen on l4 and t4, between 1/3 (the voltage falls with the clock) and 1 (it can't fall). It takes no part in
predictions from a GPU's own timings.

`buddysim machines measure --model` measures operators of a GPU. It was run on a CPU, with PyTorch and
in OpenCL on PoCL, not on a GPU.
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
        "rows of the GPU count; what GPUs share is as it is. *Nearest*: each checked row's prediction is corrected by "
        f"the median error of the {NEAREST} rows of nearest extents; the error that is left no smooth model can "
        "remove. *Spread*: by how much measured times of a product and of the same with rows and columns exchanged "
        "differ: median, and one in ten."
    )
    yield ""
    yield (
        "| kind | GPU | name | source | rows, checked | seen | **checked** | 90 % | under 20 us | to 100 us | to 1 ms "
        "| longer | left out | nearest | spread |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    fitted = fitted_constants()
    for (file, gpu, name, source), rows in groups().items():
        own = fitted.get(gpu, OperatorConstants(gpu))
        seen, checked = ([row for row in rows if row.checks == flag] for flag in (False, True))
        others = {machine: one for machine, one in fitted.items() if not same_chip(machine, gpu)}
        inside, outside = (errors(figures[gpu], file, part, own, fitted) if part else None for part in (seen, checked))
        every, away = (errors(figures[gpu], file, rows, own, some) for some in (fitted, others))
        if outside is None:
            continue
        times = np.array([row.us for row in checked])
        cells = [_median(inside), f"**{_median(outside)}**", f"{100 * np.nanquantile(abs(outside), 0.9):.0f}%"]
        for low, high in pairwise(CLASSES_US):
            cells.append(_median(outside[(times >= low) & (times < high)]))
        yield (
            f"| {file} | {gpu} | {name} | {source or 'a'} | {len(rows)}, {len(checked)} | "
            + " | ".join([*cells, _median(away), _nearest(rows, every), _spread(rows) if file == "products" else "-"])
            + " |"
        )


def _median(values: np.ndarray[tuple[int], np.dtype[np.float64]] | None) -> str:
    if values is None or not np.isfinite(values).any():
        return "-"
    return f"{100 * np.nanmedian(abs(values)):.1f}%"


def _nearest(rows: Sequence[MeasuredOperator], away: np.ndarray[tuple[int], np.dtype[np.float64]] | None) -> str:
    """Return the median error of checked rows over that of the rows around them."""
    if away is None or len(rows) < MIN_PAIRS:
        return "-"
    extents = np.log2(np.array([row.extents for row in rows], dtype=float) + 1)
    ratios = np.log1p(away)
    left = []
    for index, row in enumerate(rows):
        if row.checks:
            distances = ((extents - extents[index]) ** 2).sum(axis=1)
            distances[index] = np.inf
            around = np.argsort(distances, kind="stable")[:NEAREST]
            left.append(abs(np.expm1(ratios[index] - np.median(ratios[around]))))
    return f"{100 * median(left):.1f}%"


def _spread(rows: Sequence[MeasuredOperator]) -> str:
    """Return by how much times of products with exchanged rows and columns differ: median, and one in ten."""
    times = {row.extents: row.us for row in rows}
    apart = sorted(
        max(us, times[batch, n, m, k]) / min(us, times[batch, n, m, k]) - 1
        for (batch, m, n, k), us in times.items()
        if m < n and (batch, n, m, k) in times
    )
    if len(apart) < MIN_PAIRS:
        return "-"
    return f"{100 * median(apart):.1f}%, {100 * apart[9 * len(apart) // 10]:.0f}%"


def outside_lines() -> Iterator[str]:
    """Yield the table of products on GPUs that have no constants for them."""
    yield "## Products on GPUs without timings"
    yield ""
    yield (
        "Square products of 1,024 to 10,240 rows in PyTorch, in no fit. Users reported one card each, some with clocks "
        "above the data sheet's. *All throttle*: with the neighbour's throttling on every GPU. In half precision and "
        "TF32 the rule of power takes it from GeForce cards. They sum in FP32 at half the rate of their chip and have "
        "the power for all of it."
    )
    yield ""
    yield "| GPU | format | rows | from | median predicted / measured | median error | all throttle |"
    yield "|---|---|---|---|---|---|---|"
    by_group: dict[tuple[str, str], list[MeasuredOperator]] = {}
    for row in read_outside():
        by_group.setdefault((row.gpu, row.name), []).append(row)
    for (gpu, name), rows in by_group.items():
        figures, nothing = GpuFigures.of(TrainingMachine.load(gpu)), OperatorConstants(gpu)
        away = errors(figures, "products", rows, nothing, fitted_constants())
        hot = errors(replace(figures, power_limit_w=None), "products", rows, nothing, fitted_constants())
        assert away is not None
        origin = OperatorModel(TrainingMachine.load(gpu)).origin(name)
        yield (
            f"| {gpu} | {name} | {len(rows)} | {origin} | {1 + np.median(away):.2f} | {_median(away)} | "
            f"{_median(hot)} |"
        )


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
    away = unfitted_errors(steps, parts, constants)
    near = sum(error <= NEAR for error in away)
    yield f"Of {len(away)} steps in no fit, the median error is {median(away):.1%}; {near} are within 25 %."
    yield ""
    yield "Steps off by more than 25 %:"
    yield ""
    yield "| step | model | tokens, batch | predicted / measured |"
    yield "|---|---|---|---|"
    for step, ratio in misses:
        yield f"| {step.id} {step.part} | {step.model} | {step.tokens}, {step.batch} | {ratio:.2f} |"


def unfitted_errors(
    steps: Sequence[TimedStep], parts: Sequence[StepParts], constants: IterationConstants
) -> list[float]:
    """Return the error of each step that is in no fit."""
    return [
        abs(step_ms(step, part, constants) / step.ms - 1)
        for step, part in zip(steps, parts, strict=True)
        if not step.fitted
    ]


def engine_lines() -> Iterator[str]:
    """Yield the table of engines with kernels of their own, against compiled steps of PyTorch."""
    yield "## An engine of its own"
    yield ""
    yield (
        "llmq is a C++ engine with fused kernels and CUDA graphs. Its steps are no times of PyTorch: they are shown, "
        "and in no error. The prediction is that of compiled code. Only rows of one GPU in bf16 are here, without "
        "settings that save memory."
    )
    yield ""
    yield "| step | GPU | model | tokens, batch | measured ms | predicted / measured |"
    yield "|---|---|---|---|---|---|"
    constants = iteration_constants()
    for step in read_steps(ENGINES):
        cost = CostModel.load(step.gpu, precision="bf16")
        ratio = step_ms(step, parts_of(step, network_of_step(step), cost), constants) / step.ms
        yield f"| {step.id} | {step.gpu} | {step.model} | {step.tokens}, {step.batch} | {step.ms:.0f} | {ratio:.2f} |"


def precision_of(step: TimedStep) -> str:
    """Return the precision of a step's products."""
    return "fp32" if step.recipe == "fp32" else step.recipe.removeprefix("amp-")


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
        origin = OperatorModel(TrainingMachine.load(step.gpu)).origin(precision_of(step))
        if not step.fitted and same_chip(origin, step.gpu):
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
        if network.version.startswith(NEWER_LIBRARY) and network.machine in TIMED_BEFORE:
            basis = "library"
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
        "*layers-half*: described CONV networks on tensor cores. *library*: timings of another version of the library. "
        "*neighbour*: without any constant of the chip. "
        f"Half precision of PyTorch 0.3 ({BEFORE_MIXED_PRECISION}) is left out: it has no automatic mixed precision. "
        "It takes two to three times as long as DeepBench's timings of the same shapes."
    )
    yield ""
    yield "| kind | rows | median error | from | to | half-width |"
    yield "|---|---|---|---|---|---|"
    for kind, one in by_kind.items():
        bounds = f"{one['low']:.2f} | {one['high']:.2f} | {50 * (one['high'] - one['low']):.1f}%"
        yield f"| {kind} | {one['rows']:.0f} | {100 * one['median']:.1f}% | {bounds} |"
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
    yield from class_lines(by_kind, ratios)
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


def class_lines(by_kind: Mapping[str, Mapping[str, float]], ratios: Sequence[MeasuredRatio]) -> Iterator[str]:
    """Yield what the ranges hold by generation of GPU, over all kinds of a GPU's own timings, and how wide they are."""
    own = [one for one in ratios if not one.kind.endswith("neighbour")]
    tested: dict[str, list[float]] = {}
    for (_, generation), held in covered(own).items():
        tested.setdefault(generation, []).extend([held.inside * held.rows, held.rows])
    widths: dict[str, list[float]] = {}
    for one in own:
        low, high = by_kind[one.kind]["low"], by_kind[one.kind]["high"]
        widths.setdefault(GENERATIONS.get(one.gpu, OLDER), []).append((high - low) / 2)
    parts = [
        f"{generation} {sum(some[::2]) / sum(some[1::2]):.0%} of {sum(some[1::2]):.0f} rows, half-width "
        f"{median(widths[generation]):.1%}"
        for generation, some in sorted(tested.items())
    ]
    whole = median(width for some in widths.values() for width in some)
    yield (
        f"Over all kinds but neighbours', the ranges hold: {'; '.join(parts)}. Half-widths are medians over rows, of "
        f"the ranges above, {whole:.1%} over all."
    )
    yield ""


CAUSES = """## Rows that miss, and why

- **mpt-760m, 512 and 1,024 tokens, A100**: 0.74 and 0.79. Measured, a step of as many tokens takes longer with shorter
  sequences (1.65 and 1.67 s, 1.52 s with 2,048), against all other models.
- **mpt-30b, 8,192 tokens**: 0.76 and 0.81. Measured, twice the tokens take 2.6 (H100) and 2.8 times (A100) as long.
- **tinyllama, litgpt-thunder-003 and 004**: 0.79 and 0.80. They are DDP. Rows that differ from those of one GPU in this
  alone take 122 ms more (eager), 53 (torchcompile) and 34 (nvfuser), for the same gradients, 18 ms alone on NVLink. So
  the executor costs it, not the link. On one GPU, torchcompile takes 51 ms more than nvfuser. With the measured 122 and
  53 ms for the modelled 12, the ratios are 0.98 and 0.90, those of one GPU.
- **bert-large in training, H100**: 0.68 to 0.97. NeuSight empties the allocator before each pass, so the pass allocates
  all memory from the driver anew. The same shape in evaluation is predicted within 4 %.
- **products, L4**: 12.3 %. Rows of nearest extents differ by 9.5 % (column *nearest*), above 8 %; exchanging rows and
  columns changes a time by 15 % at the median, elsewhere by 1 to 4 %. At 72 W the clock moves.
- **products, L40S**: 7.8 %, 9.3 % before two things were found in how the rows were measured. vLLM's rows use six sets
  of weights in turn: from 16 MB on, a sixth of the L2 cache, they fall from 1.2 to 0.67 TB/s. TensorRT-LLM's use as
  many sets as the cache just holds. At 48 to 56 MB and 96 to 112 MB they move 1.0 to 2.3 TB/s; device memory moves
  0.86. Rows with such sets are left out. On H100 and A100 both frameworks agree there.
- **products in fp32 without the own chip**: L4 16.5 %, T4 15.8 %, cards of 72 and 70 W. How their clock falls under
  load is in two constants, the part of the peak and the throttling. With these two alone the errors are 11.8 and 8.5 %;
  no other one brings either below 15. With an exponent for each of the two, no pair brings both below 15 %: 0.60 and
  0.15 give 17.0 and 14.6 %, 0.65 and 0.15 give 14.6 and 19.7 %.
- **products in fp16, A100, source c**: 15.3 %. Two sources differ: the longest products reach 293 TFLOP/s in c, 260 in
  v. Constants are v's; with those of source a in bf16 the error of c is 3.6 %.
- **elementwise, A100 and H100, source v**: 6.3 and 7.2 %, 17.6 and 26.9 % before the L2 cache counted. 11 of 39 and 10
  of 24 rows move more bytes than device memory can, up to 1.13 times its peak: the kernel before has written them.
  Times are whole microseconds. Repeated ones differ by 11 and 5 %.
- **elementwise, A100 from the A40, H100 from the A100, source v**: 29 and 15 %. The L2 cache is 2.1 (A40), 1.3 and 1.5
  times as fast as device memory. With the own ratio alone the errors are 3.6 and 7.6 %.
- **norm, softmax and elementwise without the own chip**: L4, P100, T4, V100, 16 to 42 %. The part of the bandwidth
  differs: element-wise 0.89 (V100), 0.72 (P100), 0.74 (T4); softmax 0.78 (L4), 0.64 (A40). With the own part alone the
  errors are at most 10.5 %.
- **norm, P100**: 10.0 %. The rate depends on the length of a row: predicted over measured is 0.92 from 512 to 1,024
  elements, 1.06 from 2,048, 1.13 from 4,096 on. Of source l, one or two rows check a kind.
- **experts without the own chip**: H200 18.4 %, B200 (trtllm) 18.6 %. A layer's fixed time is 36 us in Triton on the
  H200, 16 us in trtllm on the B200, 14 us in Triton on the L40S. With the own fixed time alone: 13.9 and 8.2 %.
- **attention, L40S from the A100**: 48 % in heads of 128. The A100's rows are of vLLM 0.14, the L40S's of 0.24: a
  call's fixed time is 6.7 and 3.6 us, the wave at the end counts 1.9 and 0.5 times. Moving hides less behind computing.
  With these three constants of the own chip the error is 12.3 %; no one alone brings it below 30 %.
- **BERT-large as a described network, V100** ([Layer times](layer-times.md)): 0.59 to 0.76. As a recorded model, source
  nvidia-bert above, the same rows are within 3 %: what was missing are unfused kernels, dropout, casts and the update.
  The measured optimizer is LAMB, the predicted one AdamW.
- **ResNet-50 as a described network, H100, AMP** ([Layer times](layer-times.md)): 0.79, in one row. Of the same source,
  FP16 is 1.57 times as fast as TF32 on the A100 and 1.49 times on the H100, and the model has 2.0 for both. The H100 is
  1.80 (FP16) and 1.89 times (TF32) as fast as the A100, the model's 2.16 is the ratio of their bandwidths.
- **A100 predicted from H100 and A40**: 1.29. Attention of version 1 is in all these steps, and the H100's ratio to
  version 2 is not the A100's.
- **A40, A6000**: the rule of power is not applied. Vidur's short runs on an A40 reach the A100's part of the peak.
- **RTX 4090 and 5060 Ti, llmq**: 1.16 to 1.20, and 1.40 to 1.45 with the L40S's throttling. Products are within 9 %
  of those that users measured (above), so they are not all of it.
- **products in half precision, L4**: 1.3 to 1.5 of one user's card. The rule of power has its exponent from products in
  FP32. In TF32 and half precision this card keeps 0.47 of its peak, the rule gives 0.33; at 1/3 it would give 0.44.
"""


def _wrapped(text: str) -> str:
    return "\n\n".join(
        part if part.startswith(("|", "#", "- ")) else "\n".join(wrap(part, 120, break_on_hyphens=False))
        for part in text.split("\n\n")
    )


def page() -> str:
    """Return docs/validation/operators.md."""
    return compared()[0]


def compared() -> tuple[str, dict[Path, str], tuple[object, ...]]:
    """Compare everything; return the page, the texts of files by their path, and the row of the table."""
    steps = read_steps()
    costs: dict[tuple[str, str, bool], CostModel] = {}

    def cost_of(step: TimedStep, left_out: bool) -> CostModel:
        key = (step.gpu, precision_of(step), left_out)
        if key not in costs:
            costs[key] = CostModel.load(step.gpu, precision=key[1])
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
        gpus=" and ".join(UNSHARED_GPUS),
        sources=" and ".join(FITTED_SOURCES),
        models=" and ".join(CHECKED_MODELS),
        exponent=POWER_EXPONENT,
    )
    lines = [
        head,
        *operator_lines(figures),
        "",
        *outside_lines(),
        "",
        *step_lines(steps, parts, constants),
        "",
        *engine_lines(),
        "",
        CAUSES,
        *kind_lines(by_kind, ratios),
    ]
    away = unfitted_errors(steps, parts, constants)
    note = f"{len(away)} steps; {sum(error <= NEAR for error in away)} within {NEAR:.0%}".replace("%", " %")
    row = (
        PAGE, "", "steps in no fit", "median error", "", None, None, HARDWARE, rounded(median(away)), None,
        NO_TOLERANCE, note,
    )  # fmt: skip
    files = {DATA / "fitted.toml": toml_text(asdict(constants)), DATA / "errors.toml": toml_text(by_kind)}
    return "\n".join(map(_wrapped, lines)) + "\n", files, row


def main() -> int:
    """Write the files."""
    _, files, row = compared()
    for path, text in files.items():
        write_text(path, text)
    write_text(TABLE, merged(TABLE, PAGE, {PAGE: [row]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
