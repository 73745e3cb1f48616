"""The CSWAP paper's numbers on its kernels: Fig. 5, 10 and 12."""

from __future__ import annotations

from statistics import fmean, median

from buddysim.gpu_codecs import BLOCKS, GRIDS, LAYOUTS, REGISTRY, is_installed, not_installed_text
from buddysim.gpu_codecs.launch_search import FIRST, STEPS
from buddysim.gpu_codecs.times import simulated_machines
from buddysim.papers.cswap.advisor_decisions import swapped_ms, swapping_ms
from buddysim.papers.cswap.codec_models import CURVES, PAPER, errors, fig5_ms, grids, searches
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults

DEFAULT = LAYOUTS[0]
_SIMULATED_KERNELS = "simulated kernels"


@simulates("fig5-10", "fig5-197", "fig5-1024")
def fig5(training: SavedResults, id: str) -> SimulatedValue:
    grid = int(id.partition("-")[2])
    shown = {curve: fig5_ms(curve, grid) for curve in CURVES}
    text = ", ".join(f"{curve} {amount:.1f}" for curve, amount in shown.items())
    return SimulatedValue(
        shown[DEFAULT],
        f"{text} ms (extrapolated in size)",
        f"{_SIMULATED_KERNELS}: {text} ms; the authors' are unknown",
    )


@simulates("fig5-shape")
def shape(training: SavedResults) -> SimulatedValue:
    shapes = {layout: _shape([fig5_ms(layout, grid) for grid in grids()]) for layout in LAYOUTS}
    text = ", ".join(f"{layout}: {name}" for layout, name in shapes.items())
    best = {layout: min(grids(), key=lambda grid, one=layout: fig5_ms(one, grid)) for layout in LAYOUTS}  # type: ignore[misc]
    where = ", ".join(f"{layout} least at grid {grid}" for layout, grid in best.items())
    return SimulatedValue(
        shapes[DEFAULT], f"{text}; {where}", f"{text}; {where}: one stream per work-item thrashes caches"
    )


def _shape(values: list[float]) -> str:
    return "falls, then rises" if values[-1] > 1.5 * min(values) < values[0] / 1.5 else "falls"


@simulates("zvc-favoured")
def favoured(training: SavedResults) -> SimulatedValue:
    """By copies and codec of all of VGG16's (128) candidates, each codec at its best launch, nothing hidden."""
    simulated = [name for name in REGISTRY.names() if simulated_machines(name, DEFAULT)]
    swap_ms = {name: sum(map(sum, swapped_ms(name))) for name in simulated if is_installed(name)}
    text = ", ".join(f"{name} {ms:.0f}" for name, ms in sorted(swap_ms.items(), key=lambda item: item[1]))
    plain = sum(before for before, *_ in swapping_ms().values())
    note = f"ms of copies and codec for all of VGG16's (128) candidates: {text}; not compressed {plain:.0f}"
    missing = not_installed_text(simulated)
    note += f"; {missing}" if missing else ""
    return SimulatedValue(min(swap_ms, key=lambda name: swap_ms[name]), note, note)


@simulates("10-rae", "10-br", "10-svm")
def time_model(training: SavedResults, id: str) -> SimulatedValue:
    model_errors = errors(DEFAULT)
    text = "; ".join(
        f"{layout}: " + ", ".join(f"{n} {e['within']:.1f} / {e['beyond']:.1f}" for n, e in errors(layout).items())
        for layout in LAYOUTS
    )
    linear = model_errors["LR 3"]["within"]
    note = f"RAE in %, within / beyond the fitted sizes: {text}"
    if id == "10-rae":
        return SimulatedValue(linear, note, note)
    other = model_errors[id.partition("-")[2].upper()]["within"]
    return SimulatedValue(100 * (1 - linear / other), note, note)


@simulates(
    "12-random", "12-random-share", "12-expert", "12-bo", "12-grid", "12-expert-random", "12-bo-expert", "12-bo-random",
    "12-order",
)  # fmt: skip
def search(training: SavedResults, id: str) -> SimulatedValue:
    costs = {
        curve: {name: median(one.cost for one in results) for name, results in searches(curve).items()}
        for curve in CURVES
    }
    simulated = costs[DEFAULT]
    text = "; ".join(f"{c}: " + ", ".join(f"{n} {v:.0f}" for n, v in cost.items()) for c, cost in costs.items())
    note = f"ms, median of five seeds: {text}"
    values: dict[str, float | str] = {
        "12-random": simulated["random"], "12-expert": simulated["expert"], "12-bo": simulated["BO"],
        "12-grid": simulated["grid"],
        "12-expert-random": 100 * simulated["expert"] / simulated["random"],
        "12-bo-expert": 100 * simulated["BO"] / simulated["expert"],
        "12-bo-random": 100 * simulated["BO"] / simulated["random"],
        "12-order": ", ".join(sorted(simulated, key=lambda n: -simulated[n])),
    }  # fmt: skip
    if id == "12-random-share":
        return SimulatedValue(_search_percent(training, simulated["random"]), note, note)
    return SimulatedValue(values[id], note, note)


def _search_percent(training: SavedResults, codec_ms: float) -> float:
    """Return the time of VGG16's (128) iteration with free compression plus that time."""
    free = training.result("vgg16", 128, "cswap-oracle", "v100", link="pcie3-measured")["time_ms"]
    return float(100 * codec_ms / (free + codec_ms))


@simulates("12-search", "search-saved")
def evaluations(training: SavedResults, id: str) -> SimulatedValue:
    every = (GRIDS[1] - GRIDS[0] + 1) * len(BLOCKS)
    ratio = every / (FIRST + STEPS)
    spread = ", ".join(f"{f.cost:.0f}" for f in searches(DEFAULT)["BO"])
    note = f"{every} over {FIRST + STEPS} evaluations; by seed, ms: {spread}; curve {PAPER}, too"
    return SimulatedValue(ratio if id == "12-search" else 100 * (1 - 1 / ratio), note)


def mean_error(layout: str) -> float:
    """RAE of linear regression, within and beyond, in per cent."""
    return fmean(errors(layout)["LR 3"].values())
