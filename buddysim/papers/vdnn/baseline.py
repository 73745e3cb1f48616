"""Network-wide memory of vDNN's baseline (Rhu et al., MICRO 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.papers.reported_values import reported_value
from buddysim.papers.simulated_values import SimulatedValue, format_by_network, simulates
from buddysim.papers.vdnn.memory_usage import result_with_every_fft, weight_bytes
from buddysim.papers.vdnn.paper_networks import GIB, SIX
from buddysim.sweep.cached_results import Result, SavedResults

TOTALS = {
    "total-alexnet": ("alexnet", 128),
    "total-vgg16-256": ("vgg19", 256),
    "total-vgg16-128": ("vgg19", 128),
    "total-vgg16-32": ("vgg19", 32),
    "total-vgg416-32": ("vgg416", 32),
}
WITHOUT_WORKSPACE = {
    "activations-vgg16-256": ("vgg19", 256),
    "activations-vgg16-128": ("vgg19", 128),
    "activations-vgg16-32": ("vgg19", 32),
    "activations-vgg416-32": ("vgg416", 32),
}


def without_workspace(result: Result) -> float:
    """GiB of the network-wide baseline without its workspace."""
    return float(result["memory.baseline_bytes"] - result["memory.baseline_workspace_bytes"]) / GIB


@simulates(*TOTALS)
def total(training: SavedResults, id: str) -> SimulatedValue:
    result = training.result(*TOTALS[id], "baseline-p")
    rest, workspace = without_workspace(result), result["memory.baseline_workspace_bytes"] / GIB
    return SimulatedValue(
        rest + workspace,
        note=f"{rest:.2f} without workspace, which leaves {reported_value(id) - rest:+.2f} for the paper's; "
        f"simulated: {workspace:.2f} ({largest_workspace(result)}){with_fft_at_224(*TOTALS[id], rest + workspace)}",
    )


def with_fft_at_224(name: str, batch: int, gib: float) -> str:
    """Return the total if FFTs are offered for larger feature maps than timed ones, where it differs."""
    other = result_with_every_fft(name, batch, "baseline-p")["memory.baseline_bytes"] / GIB
    return f"; {other:.1f} with FFTs at 224 x 224" if other != gib else ""


def largest_workspace(result: Result) -> str:
    """The layer with the largest workspace, and its algorithms."""
    row = max(result["per_layer"], key=lambda row: row["workspace_bytes"])
    return f"{row['name']}: {', '.join(sorted(set(row['algorithms'].values())))}"


@simulates("total-growth")
def growth(training: SavedResults) -> SimulatedValue:
    small, large = (training.result(name, 32, "baseline-p") for name in ("vgg19", "vgg416"))
    bare = without_workspace(large) / without_workspace(small)
    return SimulatedValue(
        large["memory.baseline_bytes"] / small["memory.baseline_bytes"],
        note=f"{bare:.1f} without workspace; the paper's own totals give 13.7",
    )


def growth_gib(training: SavedResults) -> tuple[float, float]:
    """Return the bytes of VGG-416 (32) beyond VGG-16 (32), without workspace: with gradients of weights, and
    without."""
    small, large = (training.result(name, 32, "baseline-p") for name in ("vgg19", "vgg416"))
    weights = [sum(row["weights_bytes"] for row in result["per_layer"]) / GIB for result in (small, large)]
    grown = without_workspace(large) - without_workspace(small)
    return grown, grown - (weights[1] - weights[0])


@simulates(*WITHOUT_WORKSPACE)
def maps(training: SavedResults, id: str) -> SimulatedValue:
    return SimulatedValue(without_workspace(training.result(*WITHOUT_WORKSPACE[id], "baseline-p")))


@simulates("edge-vgg16-128")
def edge(training: SavedResults) -> SimulatedValue:
    result = training.result("vgg19", 128, "baseline-m")
    need, have = result["memory.peak_bytes"] / GIB, result["memory.capacity_bytes"] / GIB
    does = "fits" if result["fits"] else "does not fit"
    return SimulatedValue(
        f"{need:.3f} of {have:.3f} GiB", note=f"baseline-m {does}: at the edge, {1024 * (have - need):+.0f} MiB left"
    )


@simulates("features-alexnet", "features-vgg16-256")
def features(training: SavedResults, id: str) -> SimulatedValue:
    result = training.result(*(("alexnet", 128) if id == "features-alexnet" else ("vgg19", 256)), "baseline-p")
    part, whole = result["feature_layers.memory.baseline_bytes"], result["memory.baseline_bytes"]
    every = sum(row["weights_bytes"] for row in result["per_layer"])
    return SimulatedValue(
        100 * (part - weight_bytes(result)) / (whole - every),
        note=f"{100 * part / whole:.1f} % with the weights' gradients",
    )


def largest_step_fraction(result: Result) -> float:
    """Return the largest fraction of network-wide memory that a layer's forward step uses: X, Y, weights, workspace."""
    return float(max(map(forward_step_bytes, result["per_layer"])) / result["memory.baseline_bytes"])


def forward_step_bytes(row: Mapping[str, Any]) -> int:
    """Return the bytes that a layer's forward step touches."""
    map_bytes = row["output_bytes"] + (0 if row["in_place"] else row["input_bytes"])
    return int(map_bytes + row["weights_bytes"] + row["forward_workspace_bytes"])


def largest_backward_fraction(result: Result) -> float:
    """Return the bytes that a layer's backward step touches, dX and dY included."""
    most = max(
        2 * (row["output_bytes"] + (0 if row["in_place"] else row["input_bytes"]))
        + 2 * row["weights_bytes"]
        + row["workspace_bytes"]
        for row in result["per_layer"]
    )
    return float(most / result["memory.baseline_bytes"])


@simulates("unused")
def unused(training: SavedResults) -> SimulatedValue:
    percents = {
        label: 100 * (1 - largest_step_fraction(training.result(name, batch, "baseline-p")))
        for label, name, batch in SIX
    }
    return SimulatedValue((min(percents.values()), max(percents.values())), note=format_by_network(percents))
