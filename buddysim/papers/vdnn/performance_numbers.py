"""Performance of vDNN's policies (Rhu et al., MICRO 2016): feature-extraction layers, relative to the oracle."""

from __future__ import annotations

from importlib import resources
from statistics import fmean

from buddysim.base.textfile import csv_tables
from buddysim.machine.training import TrainingMachine
from buddysim.papers.simulated_values import SimulatedValue, format_by_network, loss_percent, simulates
from buddysim.papers.vdnn.paper_networks import SIX
from buddysim.sweep.cached_results import Result, SavedResults
from buddysim.training.schemes.vdnn_dyn import FASTER_WITH_LESS


@simulates("all-m-loss", "all-m-loss-most", "conv-m-loss", "conv-m-loss-most")
def losses(training: SavedResults, id: str) -> SimulatedValue:
    policy = "vdnn-all-m" if id.startswith("all") else "vdnn-conv-m"
    results = {label: training.result(name, batch, policy) for label, name, batch in SIX}
    lost = {label: loss_percent(result) for label, result in results.items()}
    algorithms = fmean(
        100
        * (
            1
            - result["feature_layers.oracle_ms"]
            / (result["feature_layers.time_ms"] - result["feature_layers.stall_ms"])
        )
        for result in results.values()
    )
    amount = max(lost.values()) if id.endswith("most") else fmean(lost.values())
    return SimulatedValue(
        amount,
        note=format_by_network(lost),
        cause=f"of the simulated mean loss of {fmean(lost.values()):.0f}, {algorithms:.0f} is implicit GEMM instead "
        "of the fastest "
        f"algorithm, {fmean(lost.values()) - algorithms:.0f} is stalls for copies",
    )


@simulates("all-m-loss-vgg16-128")
def loss_vgg16_128(training: SavedResults) -> SimulatedValue:
    result = training.result("vgg19", 128, "vdnn-all-m")
    stalled = 100 * result["feature_layers.stall_ms"] / result["feature_layers.time_ms"]
    return SimulatedValue(loss_percent(result), note=f"{stalled:.1f} % of its time are stalls for copies")


@simulates("dyn-time")
def dyn_time(training: SavedResults) -> SimulatedValue:
    relative_performance = {
        label: 100 - loss_percent(training.result(name, batch, "vdnn-dyn")) for label, name, batch in SIX
    }
    return SimulatedValue(fmean(relative_performance.values()), note=format_by_network(relative_performance))


@simulates("dyn-time-worst")
def dyn_worst(training: SavedResults) -> SimulatedValue:
    result = training.result("vgg19", 256, "vdnn-dyn")
    decisions = result["provenance"]["decisions"]
    configurations = [decision for decision in decisions if not decision.startswith(FASTER_WITH_LESS)]
    return SimulatedValue(100 - loss_percent(result), note=f"dyn chooses {configurations[-1]}")


@simulates("reuse-alexnet", "reuse-vgg16-64")
def reuse(training: SavedResults, id: str) -> SimulatedValue:
    result = training.result(*(("alexnet", 128) if id == "reuse-alexnet" else ("vgg19", 64)), "oracle")
    first = next(row for row in result["per_layer"] if row["kind"] == "conv")
    measured, simulated = timed_vgg_a(), training.result("vgg11", 64, "oracle")["time_ms"]
    distance = first["reuse_distance_ms"]
    return SimulatedValue(
        distance,
        note=f"of {result['time_ms']:.0f} ms of the iteration",
        cause=f"Torch with cuDNN 4 takes {measured:.0f} ms for VGG-A (64) on this GPU (convnet-benchmarks), the "
        "simulated oracle "
        f"{simulated:.0f}: slower by the same factor, {distance:.0f} ms would be {distance * measured / simulated:.0f}",
    )


def timed_vgg_a() -> float:
    """Published ms of an iteration of VGG-A (64), Titan X, cuDNN 4."""
    data = resources.files("buddysim.training.cost") / "data" / "networks-titan-x.csv"
    table = csv_tables(data.read_text(encoding="utf-8"), data.name)
    rows = [row for row in table if (row["library"], row["network"]) == ("cudnn4", "vgg11")]
    return sum(float(row["ms"]) for row in rows if row["batch"] == "64" and row["kernels"] == "cudnn")


@simulates("conv-share")
def conv_percent(training: SavedResults) -> SimulatedValue:
    percents = {}
    for label, name, batch in SIX:
        rows = [row for row in training.result(name, batch, "oracle")["per_layer"] if row["part"] == "features"]
        times = {row["index"]: row["forward_ms"] + row["backward_ms"] for row in rows}
        percents[label] = 100 * sum(times[row["index"]] for row in rows if row["kind"] == "conv") / sum(times.values())
    return SimulatedValue(fmean(percents.values()), note=format_by_network(percents))


@simulates("dram-worst")
def dram_worst(training: SavedResults) -> SimulatedValue:
    machine = TrainingMachine.load("titan-x")
    return SimulatedValue(100 * machine.links["pcie3-peak"].offload_bytes_per_s / machine.dram_bytes_per_s)


@simulates("dram-unsaturated")
def dram_unsaturated(training: SavedResults) -> SimulatedValue:
    utilization, layer = max(dram_utilizations(training.result("vgg19", 256, "oracle")))
    return SimulatedValue(100 * utilization, note=f"{layer}; a lower bound, from the layer's shapes")


def dram_utilizations(result: Result) -> list[tuple[float, str]]:
    """Return the memory bandwidth utilization of each CONV layer's forward and backward computation."""
    peak = result["provenance"]["dram_bytes_per_s"]
    return [
        (row[f"{pass_}_dram_bytes"] / (row[f"{pass_}_ms"] / 1e3) / peak, f"{row['name']}, {pass_}")
        for row in result["per_layer"]
        for pass_ in ("forward", "backward")
        if row["kind"] == "conv"
    ]


@simulates("power")
def power(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(None, note="the simulator has no model of power")
