"""Ours for the vDNN paper's numbers on time, of the feature-extraction layers against the oracle's."""

from __future__ import annotations

import csv
from importlib import resources

from buddysim.figures.paper import SIX
from buddysim.figures.runs import Runs
from buddysim.papers.numbers import Ours, measures
from buddysim.papers.told import Result, listed, loss, mean


@measures("all-m-loss", "all-m-loss-most", "conv-m-loss", "conv-m-loss-most")
def losses(runs: Runs, id: str) -> Ours:
    policy = "vdnn-all-m" if id.startswith("all") else "vdnn-conv-m"
    results = {label: runs.one(name, batch, policy) for label, name, batch in SIX}
    lost = {label: loss(result) for label, result in results.items()}
    algorithms = mean(
        100 * (1 - result["features.oracle_ms"] / (result["features.time_ms"] - result["features.stall_ms"]))
        for result in results.values()
    )
    amount = max(lost.values()) if id.endswith("most") else mean(lost.values())
    return Ours(
        amount,
        said=listed(lost),
        cause=f"of our mean loss of {mean(lost.values()):.0f}, {algorithms:.0f} is implicit GEMM against the fastest "
        f"algorithm, {mean(lost.values()) - algorithms:.0f} is waiting for copies",
    )


@measures("all-m-loss-vgg16-128")
def loss_vgg16_128(runs: Runs) -> Ours:
    result = runs.one("vgg19", 128, "vdnn-all-m")
    stalled = 100 * result["features.stall_ms"] / result["features.time_ms"]
    return Ours(loss(result), said=f"{stalled:.1f} % of its time waiting for copies")


@measures("dyn-time")
def dyn_time(runs: Runs) -> Ours:
    kept = {label: 100 - loss(runs.one(name, batch, "vdnn-dyn")) for label, name, batch in SIX}
    return Ours(mean(kept.values()), said=listed(kept))


@measures("dyn-time-worst")
def dyn_worst(runs: Runs) -> Ours:
    result = runs.one("vgg19", 256, "vdnn-dyn")
    return Ours(100 - loss(result), said=f"taken: {result['provenance']['decisions'][-1]}")


@measures("reuse-alexnet", "reuse-vgg16-64")
def reuse(runs: Runs, id: str) -> Ours:
    result = runs.one(*(("alexnet", 128) if id == "reuse-alexnet" else ("vgg19", 64)), "oracle")
    first = next(row for row in result["per_layer"] if row["kind"] == "conv")
    measured, ours = timed_vgg_a(), runs.one("vgg11", 64, "oracle")["time_ms"]
    distance = first["reuse_distance_ms"]
    return Ours(
        distance,
        said=f"of {result['time_ms']:.0f} ms of the iteration",
        cause=f"Torch with cuDNN 4 takes {measured:.0f} ms for VGG-A (64) on this GPU (convnet-benchmarks), our oracle "
        f"{ours:.0f}: slower by the same factor, {distance:.0f} ms would be {distance * measured / ours:.0f}",
    )


def timed_vgg_a() -> float:
    """Published ms of an iteration of VGG-A (64), Titan X, cuDNN 4."""
    data = resources.files("buddysim.training.cost") / "data" / "networks-titan-x.csv"
    lines = [line for line in data.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if (row["library"], row["network"]) == ("cudnn4", "vgg11")]
    return sum(float(row["ms"]) for row in rows if row["batch"] == "64" and row["kernels"] == "cudnn")


@measures("conv-share")
def conv_share(runs: Runs) -> Ours:
    shares = {}
    for label, name, batch in SIX:
        rows = [row for row in runs.one(name, batch, "oracle")["per_layer"] if row["part"] == "features"]
        times = {row["index"]: row["forward_ms"] + row["backward_ms"] for row in rows}
        shares[label] = 100 * sum(times[row["index"]] for row in rows if row["kind"] == "conv") / sum(times.values())
    return Ours(mean(shares.values()), said=listed(shares))


@measures("dram-worst")
def dram_worst(runs: Runs) -> Ours:
    from buddysim.machine.training import TrainingMachine

    machine = TrainingMachine.load("titan-x")
    return Ours(100 * machine.links["pcie3-peak"].offload_bytes_per_s / machine.dram_bytes_per_s)


@measures("dram-unsaturated")
def dram_unsaturated(runs: Runs) -> Ours:
    most, layer = max(dram_shares(runs.one("vgg19", 256, "oracle")))
    return Ours(100 * most, said=f"{layer}; least traffic that the layer's shapes allow")


def dram_shares(result: Result) -> list[tuple[float, str]]:
    """Share of peak memory bandwidth of each CONV layer's forward and backward computation."""
    peak = result["provenance"]["dram_bytes_per_s"]
    return [
        (row[f"{pass_}_dram_bytes"] / (row[f"{pass_}_ms"] / 1e3) / peak, f"{row['name']}, {pass_}")
        for row in result["per_layer"]
        for pass_ in ("forward", "backward")
        if row["kind"] == "conv"
    ]


@measures("power")
def power(runs: Runs) -> Ours:
    return Ours(None, said="the simulator has no model of power")
