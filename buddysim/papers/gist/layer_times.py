"""Slowdown of an iteration: with encodings, vDNN, naive swapping."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from buddysim.papers.gist.paper_networks import NETWORKS, lossy, run, slowdown_percent
from buddysim.papers.simulated_values import SimulatedValue, format_by_network, simulates
from buddysim.sweep.cached_results import SavedResults

_CODECS = (
    "encodings take the time that their bytes take at 336 GB/s, where the paper's CUDA and cuSPARSE kernels are slower"
)


def slowdowns(scheme: Callable[[str], str], baseline: str = "gist-base") -> dict[str, float]:
    """By the paper's name of the network, in per cent."""
    return {label: slowdown_percent(label, scheme(label), baseline) for label in NETWORKS}


def scheme_slowdowns(scheme: str) -> dict[str, float]:
    """Return the slowdowns of one scheme; swapping is compared with the same algorithms without it."""
    return slowdowns(lambda label: scheme, "baseline-m" if scheme in ("vdnn-all-m", "naive-swap") else "gist-base")


@simulates("overhead-lossless", "overhead-lossy", "overhead-vgg16", "ssdc-slower", "dpr-slower")
def overhead(training: SavedResults, id: str) -> SimulatedValue:
    by_network = {
        "overhead-lossless": lambda: scheme_slowdowns("gist-lossless"),
        "overhead-lossy": lambda: slowdowns(lossy),
        "overhead-vgg16": lambda: slowdowns(lossy),
        "ssdc-slower": lambda: scheme_slowdowns("gist-ssdc"),
        "dpr-slower": lambda: slowdowns(lambda label: lossy(label).replace("gist-", "gist-dpr-")),
    }[id]()
    amount = by_network["VGG16"] if id == "overhead-vgg16" else fmean(by_network.values())
    return SimulatedValue(amount, note=format_by_network(by_network, "{:.1f}"), cause=_CODECS)


@simulates("swap-average", "vdnn-average", "vdnn-inception")
def swapping(training: SavedResults, id: str) -> SimulatedValue:
    by_network = scheme_slowdowns("naive-swap" if id.startswith("swap") else "vdnn-all-m")
    return SimulatedValue(
        by_network["Inception"] if id == "vdnn-inception" else fmean(by_network.values()),
        note=f"X of all feature layers, at 12.8 GB/s: {format_by_network(by_network, '{:.1f}')}",
        cause=_swapped(),
    )


def _swapped() -> str:
    """Return the percentage of Inception's offloaded bytes in layers that vDNN's paper does not describe."""
    outcome = run("Inception", "vdnn-all-m")
    moved: dict[str, int] = {}
    for task in outcome.program.tasks:
        if task.stream == "offload":
            kind = outcome.network.layers[task.layer].kind
            moved[kind] = moved.get(kind, 0) + task.byte_count
    known = sum(moved.get(kind, 0) for kind in ("conv", "maxpool", "avgpool", "relu"))
    percent = 100 * (1 - known / sum(moved.values()))
    return (
        f"{percent:.0f} % of what Inception v3 moves here is X of concatenations and batch normalisations, which "
        "vDNN's "
        "paper doesn't have"
    )


@simulates("swap-order")
def order(training: SavedResults) -> SimulatedValue:
    means = {
        "Gist": fmean(slowdowns(lossy).values()),
        "vDNN": fmean(scheme_slowdowns("vdnn-all-m").values()),
        "naive swapping": fmean(scheme_slowdowns("naive-swap").values()),
    }
    return SimulatedValue(
        ", ".join(sorted(means, key=lambda name: means[name])), note=format_by_network(means, "{:.1f}")
    )


@simulates("binarize-faster", "both-against-ssdc", "inplace-speed")
def single(training: SavedResults, id: str) -> SimulatedValue:
    by_network = {
        "binarize-faster": lambda: scheme_slowdowns("gist-binarize"),
        "both-against-ssdc": lambda: slowdowns(lambda label: "gist-ssdc-binarize", "gist-ssdc"),
        "inplace-speed": lambda: scheme_slowdowns("gist-inplace"),
    }[id]()
    mean = fmean(by_network.values())
    faster = "faster than SSDC alone" if id == "both-against-ssdc" else "faster than the baseline"
    text = "as the baseline" if abs(mean) < 0.05 else faster if mean < 0 else "slower"
    return SimulatedValue(text, note=f"slowdown in per cent: {format_by_network(by_network, '{:.1f}')}")
