"""Ours for the vDNN paper's numbers on network-wide memory (Rhu et al., MICRO 2016)."""

from __future__ import annotations

from buddysim.figures.paper import GIB, SIX, value
from buddysim.figures.runs import Runs
from buddysim.figures.vdnn_fig1 import most_used
from buddysim.papers.numbers import Ours, measures
from buddysim.papers.told import Result, listed

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
