"""Memory under vDNN's policies (Rhu et al., MICRO 2016), counted as `buddysim.papers.vdnn.memory_usage` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from buddysim.papers.simulated_values import SimulatedValue, format_by_network, loss_percent, simulates
from buddysim.papers.vdnn.baseline import without_workspace
from buddysim.papers.vdnn.memory_usage import OTHERS, TAKEN, mean_saving, saved_by_network, saved_percent, used_bytes
from buddysim.papers.vdnn.paper_networks import DEEP, GIB, SIX
from buddysim.sweep.cached_results import Result, SavedResults


@simulates(
    "all-m-peak", "all-m-average", "all-p-peak", "all-p-average",
    "conv-p-peak", "conv-p-average", "dyn-peak", "dyn-average",
)  # fmt: skip
def average_saving(training: SavedResults, id: str) -> SimulatedValue:
    policy, _, kind = id.rpartition("-")
    percents = saved_by_network(training, policy, kind)
    others = {
        name: mean_saving(training, policy, kind, replace(TAKEN, **other))
        for name, other in OTHERS.items()
        if kind == "average" or "over_layers" not in other
    }
    note = f"{format_by_network(percents)}; without {format_by_network(others)}"
    if policy == "dyn":
        note += f"; {if_it_offloaded(training, percents, kind)}"
    return SimulatedValue(fmean(percents.values()), note=note)


def if_it_offloaded(training: SavedResults, percents: Mapping[str, float], kind: str) -> str:
    """Return dyn's saving if VGG-16 (128) did not fit without offloading, as the introduction implies."""
    conv = saved_percent(training.result("vgg19", 128, "vdnn-conv-p"), kind)
    mean = fmean({**percents, "VGG-16 (128)": conv}.values())
    return f"{mean:.0f} if VGG-16 (128) had to offload (conv(p)), as the introduction's range of 73 to 98 % implies"


@simulates("average-alexnet", "average-overfeat", "average-googlenet", "average-vgg16-256")
def largest_saving(training: SavedResults, id: str) -> SimulatedValue:
    name, batch = {
        "average-alexnet": ("alexnet", 128),
        "average-overfeat": ("overfeat", 128),
        "average-googlenet": ("googlenet", 128),
        "average-vgg16-256": ("vgg19", 256),
    }[id]
    result = training.result(name, batch, "vdnn-all-m")
    over_time = saved_percent(result, "average", replace(TAKEN, over_layers=False))
    return SimulatedValue(saved_percent(result, "average"), note=f"averaged over time, not layers: {over_time:.1f}")


@simulates("all-m-vgg16-128", "all-m-vgg16-128-published")
def all_m_peak(training: SavedResults, id: str) -> SimulatedValue:
    published = training.result("vgg19", 128, "vdnn-all-m")
    later = training.result("vgg19", 128, "vdnn-all-m", prefetch="just-in-time")
    peaks = [used_bytes(result, "peak") / GIB for result in (published, later)]
    if id == "all-m-vgg16-128":
        return SimulatedValue(peaks[1], note=f"prefetch just in time; {peaks[0]:.2f} with the published search")
    return SimulatedValue((peaks[0], peaks[0]), note="prefetch by the published search")


@simulates("offload-vgg16-256")
def offloaded_bytes(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(training.result("vgg19", 256, "vdnn-all-m")["offload.bytes"] / GIB)


@simulates("batch-64")
def largest_of_three(training: SavedResults) -> SimulatedValue:
    fitting = [batch for batch in (64, 128, 256) if training.result("vgg19", batch, "baseline-p")["fits"]]
    return SimulatedValue(float(max(fitting)))


def not_trainable(training: SavedResults) -> dict[str, tuple[str, int]]:
    return {
        label: (name, batch)
        for label, name, batch in (*SIX, *DEEP)
        if not training.result(name, batch, "baseline-p")["fits"]
    }


@simulates("untrainable")
def untrainable(training: SavedResults) -> SimulatedValue:
    untrainable_networks = not_trainable(training)
    return SimulatedValue(float(len(untrainable_networks)), note=", ".join(untrainable_networks))


@simulates("untrainable-range")
def untrainable_range(training: SavedResults) -> SimulatedValue:
    results = [training.result(name, batch, "baseline-p") for name, batch in not_trainable(training).values()]
    sizes = [result["memory.baseline_bytes"] / GIB for result in results]
    bare = [without_workspace(result) for result in results]
    return SimulatedValue((min(sizes), max(sizes)), note=f"{min(bare):.1f} to {max(bare):.1f} without workspace")


@simulates("six-average")
def six_average(training: SavedResults) -> SimulatedValue:
    networks = not_trainable(training)
    results = {label: training.result(n, b, "vdnn-dyn") for label, (n, b) in networks.items()}
    percents = {label: saved_percent(result, "average") for label, result in results.items()}
    unmoved = [label for label, result in results.items() if not result["offload.bytes"]]
    notes = [format_by_network(percents)]
    notes += [fitted_without_offloading(training, label, *networks[label]) for label in unmoved]
    return SimulatedValue((min(percents.values()), max(percents.values())), note="; ".join(notes))


def fitted_without_offloading(training: SavedResults, label: str, name: str, batch: int) -> str:
    """Return the workspace beyond which a network that dyn fits without offloading needs conv(p), and its saving."""
    none, conv = (training.result(name, batch, f"vdnn-{policy}-p") for policy in ("none", "conv"))
    workspace = none["memory.workspace_bytes"] / GIB
    left = (none["memory.capacity_bytes"] - none["memory.peak_bytes"]) / GIB
    return (
        f"dyn fits {label} without offloading, with {workspace:.2f} GiB of workspace at the peak; with more than "
        f"{workspace + left:.2f} it would not, and conv(p) saves {saved_percent(conv, 'average'):.0f} %"
    )


@simulates("six-overhead")
def six_overhead(training: SavedResults) -> SimulatedValue:
    lost = {label: loss_percent(training.result(n, b, "vdnn-dyn")) for label, (n, b) in not_trainable(training).items()}
    return SimulatedValue((min(lost.values()), max(lost.values())), note=format_by_network(lost, "{:.1f}"))


def deep(training: SavedResults) -> dict[str, Result]:
    return {label: training.result(name, batch, "vdnn-dyn") for label, name, batch in DEEP}


@simulates("deep-gpu")
def deep_gpu(training: SavedResults) -> SimulatedValue:
    results = deep(training)
    gpu_gib = {label: gpu_bytes(result) / GIB for label, result in results.items()}
    features = max(used_bytes(result, "peak") for result in results.values()) / GIB
    gradients = max(result["memory.peak_bytes"] for result in results.values()) / GIB
    return SimulatedValue(
        max(gpu_gib.values()),
        note=f"the entire network, weights once: {format_by_network(gpu_gib, '{:.2f}')}; "
        f"{features:.2f} of the feature layers, "
        f"{gradients:.2f} of the entire network with the weights' gradients",
    )


def gpu_bytes(result: Result) -> int:
    """The most that the entire network holds on the GPU, weights counted once: V-E is about all that is allocated."""
    return int(result["memory.peak_bytes"] - sum(row["weights_bytes"] for row in result["per_layer"]))


@simulates("deep-host")
def deep_host(training: SavedResults) -> SimulatedValue:
    percents, both = {}, {}
    for label, result in deep(training).items():
        host = result["host.peak_pinned_bytes"]
        percents[label] = 100 * host / (host + gpu_bytes(result))
        both[label] = 100 * host / (host + result["memory.peak_bytes"])
    return SimulatedValue(
        (min(percents.values()), max(percents.values())),
        note=f"{format_by_network(percents)}; with the weights' gradients {format_by_network(both)}",
    )


@simulates("deep-time")
def deep_time(training: SavedResults) -> SimulatedValue:
    results = deep(training)
    lost = {label: loss_percent(result) for label, result in results.items()}
    first = max(results["VGG-416 (32)"]["per_layer"], key=lambda row: row["forward_stall_ms"])
    copying = first["forward_ms"] + first["forward_stall_ms"]
    algorithm = first["algorithms"]["forward"]
    return SimulatedValue(
        max(lost.values()),
        note=f"{format_by_network(lost, '{:.1f}')}; most at {first['name']} and its like: "
        f"X takes {copying:.0f} ms to copy, "
        f"the forward step {first['forward_ms']:.0f} ({algorithm})",
    )
