"""Ours for each number of the vDNN paper (Rhu et al., MICRO 2016)."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from importlib import resources
from itertools import pairwise
from typing import Any

from plots.paper import DEEP, GIB, SIX, value
from plots.runs import Runs
from plots.vdnn_fig1 import most_used
from tools.training_numbers import Ours, measures

Result = Any

TOTALS = {
    "total-alexnet": ("alexnet", 128),
    "total-vgg16-256": ("vgg19", 256),
    "total-vgg16-128": ("vgg19", 128),
    "total-vgg16-32": ("vgg19", 32),
    "total-vgg416-32": ("vgg416", 32),
}
WITHOUT_WORKSPACE = {
    "maps-vgg16-256": ("vgg19", 256),
    "maps-vgg16-128": ("vgg19", 128),
    "maps-vgg16-32": ("vgg19", 32),
    "maps-vgg416-32": ("vgg416", 32),
}


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean."""
    values = list(values)
    return sum(values) / len(values)


def listed(values: dict[str, float], form: str = "{:.0f}") -> str:
    """``AlexNet (128) 75, OverFeat (128) 91``."""
    return ", ".join(f"{label} {form.format(amount)}" for label, amount in values.items())


# What is taken over.


@measures("titan-x-flops", "titan-x-bandwidth", "titan-x-memory", "titan-xp-bandwidth", "host-memory")
def machine_figures(runs: Runs, id: str) -> Ours:
    from buddysim.machine.training import TrainingMachine

    titan_x, titan_xp = TrainingMachine.load("titan-x"), TrainingMachine.load("titan-xp")
    return Ours(
        {
            "titan-x-flops": titan_x.fp32_flops / 1e12,
            "titan-x-bandwidth": titan_x.dram_bytes_per_s / 1e9,
            "titan-x-memory": titan_x.memory_bytes / GIB,
            "titan-xp-bandwidth": titan_xp.dram_bytes_per_s / 1e9,
            "host-memory": titan_x.host_memory_bytes / GIB,
        }[id]
    )


@measures("pcie3-peak", "pcie3-effective", "shared-link")
def links(runs: Runs, id: str) -> Ours:
    from buddysim.machine.training import TrainingMachine

    name = {"pcie3-peak": "pcie3-peak", "pcie3-effective": "pcie3", "shared-link": "pcie3-shared"}[id]
    rates = TrainingMachine.load("titan-x").links[name]
    return Ours(rates.offload_bytes_per_s / 1e9, said=f"link `{name}`" + (", the default" if name == "pcie3" else ""))


@measures("page-migration")
def page_migration(runs: Runs) -> Ours:
    slow, fast = (4096 / us for us in (50, 20))  # bytes per microsecond: MB/s
    return Ours((round(slow, -1), round(fast, -2)), said=f"4096 B in 50 and 20 us: {slow:.0f} and {fast:.0f} MB/s")


@measures("vgg-convs")
def vgg_convs(runs: Runs) -> Ours:
    from buddysim.dnn import Network

    networks = [Network.load(name) for name in ("vgg19", *(name for _, name, _ in DEEP))]
    return Ours(tuple(float(sum(layer.kind == "conv" for layer in network.layers)) for network in networks))


@measures("vgg-added")
def vgg_added(runs: Runs) -> Ours:
    from buddysim.dnn import Network

    def groups(name: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for layer in Network.load(name).layers:
            if layer.kind == "conv":
                group = layer.name.partition("_")[0]
                counts[group] = counts.get(group, 0) + 1
        return counts

    names = ("vgg19", *(name for _, name, _ in DEEP))
    added = {
        groups(deeper)[group] - count for shallow, deeper in pairwise(names) for group, count in groups(shallow).items()
    }
    return Ours(float(added.pop()) if len(added) == 1 else None)


# Memory of the network-wide baseline.

TOTAL_OF = {"features-alexnet": "total-alexnet", "features-vgg16-256": "total-vgg16-256"}


def without_workspace(result: Result) -> float:
    """GiB of the network-wide baseline without its workspace."""
    return (result["memory.baseline_bytes"] - result["memory.baseline_workspace_bytes"]) / GIB


@measures(*TOTALS)
def total(runs: Runs, id: str) -> Ours:
    result = runs.one(*TOTALS[id], "base-p")
    rest, workspace = without_workspace(result), result["memory.baseline_workspace_bytes"] / GIB
    return Ours(
        rest + workspace,
        said=f"{rest:.2f} without workspace, so the paper's has {value(id) - rest:+.2f}; ours is {workspace:.2f} "
        f"({largest_workspace(result)})",
    )


def largest_workspace(result: Result) -> str:
    """The layer with the largest workspace, and its algorithms."""
    row = max(result["per_layer"], key=lambda row: row["workspace_bytes"])
    return f"{row['name']}: {', '.join(sorted(set(row['algorithms'].values())))}"


@measures("total-growth")
def growth(runs: Runs) -> Ours:
    small, large = (runs.one(name, 32, "base-p") for name in ("vgg19", "vgg416"))
    bare = without_workspace(large) / without_workspace(small)
    return Ours(
        large["memory.baseline_bytes"] / small["memory.baseline_bytes"],
        said=f"{bare:.1f} without workspace; the paper's own totals give 13.7",
    )


@measures(*WITHOUT_WORKSPACE)
def maps(runs: Runs, id: str) -> Ours:
    return Ours(without_workspace(runs.one(*WITHOUT_WORKSPACE[id], "base-p")))


@measures("edge-vgg16-128")
def edge(runs: Runs) -> Ours:
    result = runs.one("vgg19", 128, "base-m")
    need, have = result["memory.peak_bytes"] / GIB, result["memory.capacity_bytes"] / GIB
    does = "fits" if result["fits"] else "does not fit"
    return Ours(
        f"{need:.3f} of {have:.3f} GiB", said=f"base-m {does}: at the edge, {1024 * (have - need):+.0f} MiB left"
    )


@measures("features-alexnet", "features-vgg16-256")
def features(runs: Runs, id: str) -> Ours:
    result = runs.one(*(("alexnet", 128) if id == "features-alexnet" else ("vgg19", 256)), "base-p")
    part, whole = result["features.memory.baseline_bytes"], result["memory.baseline_bytes"]
    workspace = result["memory.baseline_workspace_bytes"]
    share = value(id) / 100
    needed = (share * (whole - workspace) - (part - workspace)) / (1 - share) / GIB
    return Ours(
        100 * part / whole,
        said=f"{100 * (part - workspace) / (whole - workspace):.1f} % without workspace; the paper's share takes "
        f"{needed:.2f} GiB of workspace, its total leaves {value(TOTAL_OF[id]) - without_workspace(result):.2f}",
    )


@measures("unused")
def unused(runs: Runs) -> Ours:
    shares = {label: 100 * (1 - most_used(runs.one(name, batch, "base-p"))) for label, name, batch in SIX}
    return Ours((min(shares.values()), max(shares.values())), said=listed(shares))


# Memory under vDNN: of the feature-extraction layers, against base-p.


def down(result: Result, kind: str) -> float:
    """How much less memory than the baseline, in per cent; kind ``"peak"`` or ``"average"``."""
    return 100 * (1 - result[f"features.memory.{kind}_bytes"] / result["features.memory.baseline_bytes"])


@measures(
    "all-m-peak", "all-m-average", "all-p-peak", "all-p-average",
    "conv-p-peak", "conv-p-average", "dyn-peak", "dyn-average",
)  # fmt: skip
def saved(runs: Runs, id: str) -> Ours:
    policy, _, kind = id.rpartition("-")
    results = {label: runs.one(name, batch, f"vdnn-{policy}") for label, name, batch in SIX}
    shares = {label: down(result, kind) for label, result in results.items()}
    bare = mean(down_without_workspace(runs, name, batch, f"vdnn-{policy}", kind) for _, name, batch in SIX)
    implied = 100 * ((100 - bare) / (100 - value(id)) - 1)
    said = f"{listed(shares)}; {bare:.0f} if no algorithm had a workspace, so the paper's figure takes a baseline "
    said += f"whose workspace is {implied:.0f} % of the rest"
    if kind == "average":
        by_layers = mean(down(result, "average_over_layers") for result in results.values())
        said += f"; averaged over layers, not time: {by_layers:.0f}"
    return Ours(mean(shares.values()), said=said)


def down_without_workspace(runs: Runs, name: str, batch: int, scheme: str, kind: str) -> float:
    """How much less memory than the baseline if algorithms had no workspace: those of the m policies, against base-m.

    What dyn offloads where nothing has a workspace is `none`'s nothing, or what `conv` or `all` offloads.
    """
    if scheme == "vdnn-dyn":
        tried = ("vdnn-none-m", "vdnn-conv-m", "vdnn-all-m")
        scheme = next(s for s in tried if runs.one(name, batch, s)["fits"])
    bare = runs.one(name, batch, scheme.removesuffix("-p").removesuffix("-m") + "-m")
    base = runs.one(name, batch, "base-m")["features.memory.peak_bytes"]
    return 100 * (1 - bare[f"features.memory.{kind}_bytes"] / base)


@measures("average-alexnet", "average-overfeat", "average-googlenet", "average-vgg16-256")
def saved_at_most(runs: Runs, id: str) -> Ours:
    name, batch = {
        "average-alexnet": ("alexnet", 128),
        "average-overfeat": ("overfeat", 128),
        "average-googlenet": ("googlenet", 128),
        "average-vgg16-256": ("vgg19", 256),
    }[id]
    result = runs.one(name, batch, "vdnn-all-m")
    by_layers = down(result, "average_over_layers")
    return Ours(down(result, "average"), said=f"averaged over layers, not time: {by_layers:.1f}")


@measures("all-m-vgg16-128", "all-m-vgg16-128-published")
def all_m_peak(runs: Runs, id: str) -> Ours:
    published = runs.one("vgg19", 128, "vdnn-all-m")
    later = runs.one("vgg19", 128, "vdnn-all-m", prefetch="just-in-time")
    peaks = [result["features.memory.peak_bytes"] / GIB for result in (published, later)]
    if id == "all-m-vgg16-128":
        return Ours(peaks[1], said=f"prefetch just in time; {peaks[0]:.2f} with the search as published")
    return Ours((peaks[0], peaks[0]), said="prefetch as published")


@measures("offload-vgg16-256")
def offloaded(runs: Runs) -> Ours:
    return Ours(runs.one("vgg19", 256, "vdnn-all-m")["offload.bytes"] / GIB)


@measures("batch-64")
def largest_of_three(runs: Runs) -> Ours:
    fitting = [batch for batch in (64, 128, 256) if runs.one("vgg19", batch, "base-p")["fits"]]
    return Ours(float(max(fitting)))


def not_trainable(runs: Runs) -> dict[str, tuple[str, int]]:
    return {label: (name, batch) for label, name, batch in (*SIX, *DEEP) if not runs.one(name, batch, "base-p")["fits"]}


@measures("untrainable")
def untrainable(runs: Runs) -> Ours:
    found = not_trainable(runs)
    return Ours(float(len(found)), said=", ".join(found))


@measures("untrainable-range")
def untrainable_range(runs: Runs) -> Ours:
    results = [runs.one(name, batch, "base-p") for name, batch in not_trainable(runs).values()]
    sizes = [result["memory.baseline_bytes"] / GIB for result in results]
    bare = [without_workspace(result) for result in results]
    return Ours((min(sizes), max(sizes)), said=f"{min(bare):.1f} to {max(bare):.1f} without workspace")


@measures("six-average")
def six_average(runs: Runs) -> Ours:
    results = {label: runs.one(n, b, "vdnn-dyn") for label, (n, b) in not_trainable(runs).items()}
    shares = {label: down(result, "average") for label, result in results.items()}
    kept = [label for label, result in results.items() if not result["offload.bytes"]]
    said = listed(shares) + (f"; dyn fits without offloading: {', '.join(kept)}" if kept else "")
    return Ours((min(shares.values()), max(shares.values())), said=said)


@measures("six-overhead")
def six_overhead(runs: Runs) -> Ours:
    lost = {label: loss(runs.one(n, b, "vdnn-dyn")) for label, (n, b) in not_trainable(runs).items()}
    return Ours((min(lost.values()), max(lost.values())), said=listed(lost, "{:.1f}"))


def deep(runs: Runs) -> dict[str, Result]:
    return {label: runs.one(name, batch, "vdnn-dyn") for label, name, batch in DEEP}


@measures("deep-gpu")
def deep_gpu(runs: Runs) -> Ours:
    results = deep(runs)
    peaks = {label: result["features.memory.peak_bytes"] / GIB for label, result in results.items()}
    last = results["VGG-416 (32)"]
    resident = 2 * sum(row["weights_bytes"] for row in last["per_layer"] if row["part"] == "features") / GIB
    return Ours(
        max(peaks.values()),
        said=f"{listed(peaks, '{:.2f}')}; of VGG-416's, weights and their gradients {resident:.2f} and workspace "
        f"{last['memory.workspace_bytes'] / GIB:.2f}",
        cause=f"VGG-416's feature layers have {resident:.2f} GiB of weights and gradients, which stay on the GPU",
    )


@measures("deep-host")
def deep_host(runs: Runs) -> Ours:
    shares = {
        label: 100 * result["host.pinned_bytes"] / (result["host.pinned_bytes"] + result["memory.peak_bytes"])
        for label, result in deep(runs).items()
    }
    return Ours((min(shares.values()), max(shares.values())), said=listed(shares))


@measures("deep-time")
def deep_time(runs: Runs) -> Ours:
    results = deep(runs)
    lost = {label: loss(result) for label, result in results.items()}
    first = max(results["VGG-416 (32)"]["per_layer"], key=lambda row: row["forward_stall_ms"])
    copying = first["forward_ms"] + first["forward_stall_ms"]
    algorithm = first["algorithms"]["forward"]
    return Ours(
        max(lost.values()),
        said=f"{listed(lost, '{:.1f}')}; most at {first['name']} and its like: X takes {copying:.0f} ms to copy, the "
        f"forward step {first['forward_ms']:.0f} ({algorithm})",
    )


# Time of the feature-extraction layers against the oracle's.


def loss(result: Result) -> float:
    """Performance lost, in per cent; where it doesn't fit, as if it did."""
    return 100 * (1 - result["features.oracle_ms"] / result["features.time_ms"])


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
    data = resources.files("buddysim.dnn.cost") / "data" / "networks-titan-x.csv"
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
