"""Memory under vDNN's policies (Rhu et al., MICRO 2016): of the feature-extraction layers, against base-p's."""

from __future__ import annotations

from statistics import fmean

from buddysim.papers.measured import Measured, by_network, loss_percent, measures
from buddysim.papers.saved import Result, SavedResults
from buddysim.papers.stated import value
from buddysim.papers.vdnn.baseline import without_workspace
from buddysim.papers.vdnn.networks import DEEP, GIB, SIX


def saved_percent(result: Result, kind: str) -> float:
    """How much less memory than the baseline; kind: ``"peak"``, ``"average"`` or ``"average_over_layers"``."""
    return float(100 * (1 - result[f"features.memory.{kind}_bytes"] / result["features.memory.baseline_bytes"]))


@measures(
    "all-m-peak", "all-m-average", "all-p-peak", "all-p-average",
    "conv-p-peak", "conv-p-average", "dyn-peak", "dyn-average",
)  # fmt: skip
def average_saving(training: SavedResults, id: str) -> Measured:
    policy, _, kind = id.rpartition("-")
    results = {label: training.result(name, batch, f"vdnn-{policy}") for label, name, batch in SIX}
    shares = {label: saved_percent(result, kind) for label, result in results.items()}
    bare = fmean(saved_without_workspace(training, name, batch, f"vdnn-{policy}", kind) for _, name, batch in SIX)
    note = f"{by_network(shares)}; {implied_workspace(bare, value(id))}"
    if kind == "average":
        by_layers = fmean(saved_percent(result, "average_over_layers") for result in results.values())
        note += f"; averaged over layers, not time: {by_layers:.0f}"
    return Measured(fmean(shares.values()), note=note)


def implied_workspace(bare: float, stated: float) -> str:
    """The workspace of the baseline that a stated saving implies; `bare` per cent are saved without any workspace."""
    implied = 100 * ((100 - bare) / (100 - stated) - 1)
    return (
        f"{bare:.0f} if no algorithm had a workspace, so the paper's figure implies a baseline whose workspace is "
        f"{implied:.0f} % of the rest"
    )


def saved_without_workspace(training: SavedResults, name: str, batch: int, scheme: str, kind: str) -> float:
    """The saving in per cent if no algorithm had a workspace: that of the m policies, against base-m.

    Without workspaces dyn offloads what the first of `none`, `conv` and `all` does that fits.
    """
    if scheme == "vdnn-dyn":
        tried = ("vdnn-none-m", "vdnn-conv-m", "vdnn-all-m")
        scheme = next(s for s in tried if training.result(name, batch, s)["fits"])
    bare = training.result(name, batch, scheme.removesuffix("-p").removesuffix("-m") + "-m")
    base = training.result(name, batch, "base-m")["features.memory.peak_bytes"]
    return float(100 * (1 - bare[f"features.memory.{kind}_bytes"] / base))


@measures("average-alexnet", "average-overfeat", "average-googlenet", "average-vgg16-256")
def largest_saving(training: SavedResults, id: str) -> Measured:
    name, batch = {
        "average-alexnet": ("alexnet", 128),
        "average-overfeat": ("overfeat", 128),
        "average-googlenet": ("googlenet", 128),
        "average-vgg16-256": ("vgg19", 256),
    }[id]
    result = training.result(name, batch, "vdnn-all-m")
    by_layers = saved_percent(result, "average_over_layers")
    implied = implied_workspace(saved_without_workspace(training, name, batch, "vdnn-all-m", "average"), value(id))
    return Measured(
        saved_percent(result, "average"), note=f"averaged over layers, not time: {by_layers:.1f}; {implied}"
    )


@measures("all-m-vgg16-128", "all-m-vgg16-128-published")
def all_m_peak(training: SavedResults, id: str) -> Measured:
    published = training.result("vgg19", 128, "vdnn-all-m")
    later = training.result("vgg19", 128, "vdnn-all-m", prefetch="just-in-time")
    peaks = [result["features.memory.peak_bytes"] / GIB for result in (published, later)]
    if id == "all-m-vgg16-128":
        return Measured(peaks[1], note=f"prefetch just in time; {peaks[0]:.2f} with the published search")
    return Measured((peaks[0], peaks[0]), note="prefetch by the published search")


@measures("offload-vgg16-256")
def offloaded(training: SavedResults) -> Measured:
    return Measured(training.result("vgg19", 256, "vdnn-all-m")["offload.bytes"] / GIB)


@measures("batch-64")
def largest_of_three(training: SavedResults) -> Measured:
    fitting = [batch for batch in (64, 128, 256) if training.result("vgg19", batch, "base-p")["fits"]]
    return Measured(float(max(fitting)))


def not_trainable(training: SavedResults) -> dict[str, tuple[str, int]]:
    return {
        label: (name, batch)
        for label, name, batch in (*SIX, *DEEP)
        if not training.result(name, batch, "base-p")["fits"]
    }


@measures("untrainable")
def untrainable(training: SavedResults) -> Measured:
    found = not_trainable(training)
    return Measured(float(len(found)), note=", ".join(found))


@measures("untrainable-range")
def untrainable_range(training: SavedResults) -> Measured:
    results = [training.result(name, batch, "base-p") for name, batch in not_trainable(training).values()]
    sizes = [result["memory.baseline_bytes"] / GIB for result in results]
    bare = [without_workspace(result) for result in results]
    return Measured((min(sizes), max(sizes)), note=f"{min(bare):.1f} to {max(bare):.1f} without workspace")


@measures("six-average")
def six_average(training: SavedResults) -> Measured:
    networks = not_trainable(training)
    results = {label: training.result(n, b, "vdnn-dyn") for label, (n, b) in networks.items()}
    shares = {label: saved_percent(result, "average") for label, result in results.items()}
    unmoved = [label for label, result in results.items() if not result["offload.bytes"]]
    notes = [by_network(shares)]
    notes += [fitted_without_offloading(training, label, *networks[label]) for label in unmoved]
    return Measured((min(shares.values()), max(shares.values())), note="; ".join(notes))


def fitted_without_offloading(training: SavedResults, label: str, name: str, batch: int) -> str:
    """With how much workspace a network that dyn fits without offloading would need conv(p), and what that saves."""
    none, conv = (training.result(name, batch, f"vdnn-{policy}-p") for policy in ("none", "conv"))
    workspace = none["memory.workspace_bytes"] / GIB
    left = (none["memory.capacity_bytes"] - none["memory.peak_bytes"]) / GIB
    return (
        f"dyn fits {label} without offloading, with {workspace:.2f} GiB of workspace at the peak; with more than "
        f"{workspace + left:.2f} it would not, and conv(p) saves {saved_percent(conv, 'average'):.0f} % "
        f"({saved_percent(conv, 'average_over_layers'):.0f} averaged over layers)"
    )


@measures("six-overhead")
def six_overhead(training: SavedResults) -> Measured:
    lost = {label: loss_percent(training.result(n, b, "vdnn-dyn")) for label, (n, b) in not_trainable(training).items()}
    return Measured((min(lost.values()), max(lost.values())), note=by_network(lost, "{:.1f}"))


def deep(training: SavedResults) -> dict[str, Result]:
    return {label: training.result(name, batch, "vdnn-dyn") for label, name, batch in DEEP}


@measures("deep-gpu")
def deep_gpu(training: SavedResults) -> Measured:
    results = deep(training)
    peaks = {label: result["features.memory.peak_bytes"] / GIB for label, result in results.items()}
    last = results["VGG-416 (32)"]
    resident = 2 * sum(row["weights_bytes"] for row in last["per_layer"] if row["part"] == "features") / GIB
    return Measured(
        max(peaks.values()),
        note=f"{by_network(peaks, '{:.2f}')}; of VGG-416's, weights and their gradients {resident:.2f} and workspace "
        f"{last['memory.workspace_bytes'] / GIB:.2f}",
        cause=f"VGG-416's feature layers have {resident:.2f} GiB of weights and gradients, which stay on the GPU",
    )


@measures("deep-host")
def deep_host(training: SavedResults) -> Measured:
    shares = {
        label: 100 * result["host.pinned_bytes"] / (result["host.pinned_bytes"] + result["memory.peak_bytes"])
        for label, result in deep(training).items()
    }
    return Measured((min(shares.values()), max(shares.values())), note=by_network(shares))


@measures("deep-time")
def deep_time(training: SavedResults) -> Measured:
    results = deep(training)
    lost = {label: loss_percent(result) for label, result in results.items()}
    first = max(results["VGG-416 (32)"]["per_layer"], key=lambda row: row["forward_stall_ms"])
    copying = first["forward_ms"] + first["forward_stall_ms"]
    algorithm = first["algorithms"]["forward"]
    return Measured(
        max(lost.values()),
        note=f"{by_network(lost, '{:.1f}')}; most at {first['name']} and its like: X takes {copying:.0f} ms to copy, "
        f"the forward step {first['forward_ms']:.0f} ({algorithm})",
    )
