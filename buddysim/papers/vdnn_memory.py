"""Ours for the vDNN paper's numbers on memory under its policies, of the feature-extraction layers against base-p."""

from __future__ import annotations

from buddysim.figures.paper import DEEP, GIB, SIX, value
from buddysim.figures.runs import Runs
from buddysim.papers.numbers import Ours, measures
from buddysim.papers.told import Result, listed, loss, mean
from buddysim.papers.vdnn_baseline import without_workspace


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
    said = f"{listed(shares)}; {implied_workspace(bare, value(id))}"
    if kind == "average":
        by_layers = mean(down(result, "average_over_layers") for result in results.values())
        said += f"; averaged over layers, not time: {by_layers:.0f}"
    return Ours(mean(shares.values()), said=said)


def implied_workspace(bare: float, stated: float) -> str:
    """What a stated saving says of the baseline's workspace, where `bare` per cent are saved without any."""
    implied = 100 * ((100 - bare) / (100 - stated) - 1)
    return (
        f"{bare:.0f} if no algorithm had a workspace, so the paper's figure takes a baseline whose workspace is "
        f"{implied:.0f} % of the rest"
    )


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
    implied = implied_workspace(down_without_workspace(runs, name, batch, "vdnn-all-m", "average"), value(id))
    return Ours(down(result, "average"), said=f"averaged over layers, not time: {by_layers:.1f}; {implied}")


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
    networks = not_trainable(runs)
    results = {label: runs.one(n, b, "vdnn-dyn") for label, (n, b) in networks.items()}
    shares = {label: down(result, "average") for label, result in results.items()}
    kept = [label for label, result in results.items() if not result["offload.bytes"]]
    said = "; ".join([listed(shares), *(without_offloading(runs, label, *networks[label]) for label in kept)])
    return Ours((min(shares.values()), max(shares.values())), said=said)


def without_offloading(runs: Runs, label: str, name: str, batch: int) -> str:
    """From which workspace on a network that dyn fits without offloading would take conv(p), and what that saves."""
    none, conv = (runs.one(name, batch, f"vdnn-{policy}-p") for policy in ("none", "conv"))
    workspace = none["memory.workspace_bytes"] / GIB
    left = (none["memory.capacity_bytes"] - none["memory.peak_bytes"]) / GIB
    return (
        f"dyn fits {label} without offloading, with {workspace:.2f} GiB of workspace at the peak; with more than "
        f"{workspace + left:.2f} it would not, and conv(p) saves {down(conv, 'average'):.0f} % "
        f"({down(conv, 'average_over_layers'):.0f} averaged over layers)"
    )


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
