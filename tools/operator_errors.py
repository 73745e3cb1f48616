"""Writes the errors of operators' times: the page, and what each kind of prediction is off by.

python tools/operator_errors.py

It simulates every measured step that ships (two minutes), fits what whole iterations are fitted for, and compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
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
from buddysim.training.cost.operators.model import ALIKE, OperatorModel
from buddysim.training.cost.operators.rows import FILES, MeasuredOperator, TimedStep, read_rows, read_steps
from buddysim.training.cost.operators.split import CHECKED_MODELS, FITTED_SOURCES, UNSHARED_GPUS
from buddysim.training.cost.operators.steps import IterationConstants, StepParts, parts_of, step_ms

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "validation" / "operators.md"
DATA = ROOT / "buddysim" / "training" / "cost" / "data" / "iterations"
CLASSES_US = (0.0, 20.0, 100.0, 1000.0, float("inf"))
"""Bounds of the classes of size: times of rows, in microseconds."""

LEFT_OUT = ("h100-sxm", "a100-40")
"""GPUs whose fp32 networks are predicted from neighbours, without any row of their own."""

HEAD = """# Times of operators

This page has the errors of operators' times and of whole steps on recorded models. Written by
`python tools/operator_errors.py`; [Layer times](../explanation/layer-times.md) describes the model. Errors are
|predicted / measured - 1|, as medians over rows.

Rules were committed before the first fit (`buddysim/training/cost/operators/split.py`). A quarter of the shapes is for
checking, the same on every GPU. No constant that GPUs share has seen {gpus}. Of whole steps, {sources} are fitted
without {models}; every other source checks.

`buddysim machines measure` measures operators on PoCL; it has not been run on a GPU for this page.
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
        "Columns of times are checked rows by size. *Left out*: constants come from a neighbour, all rows of the GPU "
        "count; what GPUs share is as it is."
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
        others = {machine: one for machine, one in fitted.items() if machine != gpu}
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
        f"{constants.communication:.2f} of their time from kernels. LLM Foundry's FlashAttention 1 takes as many times "
        f"as long as version 2: {older}."
    )
    yield ""
    yield "| source | GPU | part | steps | median | median error | smallest | largest |"
    yield "|---|---|---|---|---|---|---|---|"
    for (source, gpu, flag), some in sorted(ratios.items()):
        away = median(abs(ratio - 1) for ratio in some)
        yield (
            f"| {source} | {gpu} | {flag} | {len(some)} | {median(some):.2f} | {100 * away:.1f}% | {min(some):.2f} | "
            f"{max(some):.2f} |"
        )
    yield ""
    yield "Steps off by more than 25 %:"
    yield ""
    yield "| step | model | tokens, batch | predicted / measured |"
    yield "|---|---|---|---|"
    for step, ratio in misses:
        yield f"| {step.id} {step.part} | {step.model} | {step.tokens}, {step.batch} | {ratio:.2f} |"


def kinds(
    steps: Sequence[TimedStep], parts: Sequence[StepParts], left: Mapping[int, StepParts],
    constants: IterationConstants,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Return the error of each kind of prediction, of rows that were never fitted."""
    ratios: dict[str, list[float]] = {}
    for number, (step, part) in enumerate(zip(steps, parts, strict=True)):
        if step.fitted:
            continue
        number_format = "fp32" if step.recipe == "fp32" else "half"
        own = fitted_constants().get(step.gpu)
        has_rows = own is not None and any(name in own.products for name in ALIKE[step.recipe.removeprefix("amp-")])
        kind = f"recorded-{number_format}-own" if has_rows else "recorded-neighbour"
        ratios.setdefault(kind, []).append(step.ms / step_ms(step, part, constants))
        if number in left:
            ratios.setdefault("recorded-neighbour", []).append(step.ms / step_ms(step, left[number], constants))
    for iteration in outside_iterations():
        number_format = "fp32" if iteration.precision == "fp32" else "half"
        basis = "own" if iteration.calibrated or iteration.machine == "v100" else "neighbour"
        ratios.setdefault(f"layers-{number_format}-{basis}", []).append(iteration.ms / iteration.modelled_ms)
    for network in independent_networks():
        basis = "neighbour" if network.machine == "k40" else "own"
        modelled = network.modelled_forward_ms + network.modelled_backward_ms
        ratios.setdefault(f"layers-fp32-{basis}", []).append((network.forward_ms + network.backward_ms) / modelled)
    return {kind: _kind(some) for kind, some in sorted(ratios.items())}


def _kind(ratios: Sequence[float]) -> dict[str, float]:
    low, high = np.quantile(ratios, [0.05, 0.95])
    away = median(abs(1 / ratio - 1) for ratio in ratios)
    return {"rows": len(ratios), "median": round(away, 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def kind_lines(by_kind: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the table of kinds of prediction."""
    yield "## Kinds of prediction"
    yield ""
    yield (
        "`time_min_ms` and `time_max_ms` are `time_ms` times these quantiles of measured over predicted time, of rows "
        "that were never fitted; nine of ten lie between."
    )
    yield ""
    yield "| kind | rows | median error | 5 % | 95 % |"
    yield "|---|---|---|---|---|"
    for kind, one in by_kind.items():
        yield f"| {kind} | {one['rows']} | {100 * one['median']:.1f}% | {one['low']:.2f} | {one['high']:.2f} |"


def _wrapped(line: str) -> str:
    return line if line.startswith("|") or "\n" in line else "\n".join(wrap(line, 120)) if line else ""


def main() -> int:
    """Compare everything and write it."""
    steps = read_steps()
    costs: dict[tuple[str, bool, bool], CostModel] = {}

    def cost_of(step: TimedStep, left_out: bool) -> CostModel:
        key = (step.gpu, step.recipe == "fp32", left_out)
        if key not in costs:
            costs[key] = CostModel.load(step.gpu, precision="fp32" if key[1] else "bf16")
            if left_out:
                others = {name: one for name, one in fitted_constants().items() if name != step.gpu}
                costs[key].operators = OperatorModel(costs[key].machine, fitted=others)
        return costs[key]

    parts = [parts_of(step, cost_of(step, False)) for step in steps]
    left = {
        number: parts_of(step, cost_of(step, True))
        for number, step in enumerate(steps)
        if step.gpu in LEFT_OUT and step.source == "neusight"
    }
    constants = fit_iterations(steps, parts)
    write_text(DATA / "fitted.toml", toml_text(asdict(constants)))
    by_kind = kinds(steps, parts, left, constants)
    write_text(DATA / "errors.toml", toml_text(by_kind))
    names = sorted({row.gpu for file in FILES for row in read_rows(file)})
    figures = {name: GpuFigures.of(TrainingMachine.load(name)) for name in names}
    head = HEAD.format(
        gpus=" and ".join(UNSHARED_GPUS), sources=" and ".join(FITTED_SOURCES), models=" and ".join(CHECKED_MODELS)
    )
    lines = [head, *operator_lines(figures), "", *step_lines(steps, parts, constants), "", *kind_lines(by_kind)]
    write_text(PAGE, "\n".join(map(_wrapped, lines)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
