"""The cDMA paper's networks with the densities of our training, beside its ratios."""

from __future__ import annotations

from functools import cache
from typing import Any

from buddysim.figures.runs import Runs
from buddysim.papers.numbers import Ours, measures
from buddysim.papers.told import listed, mean
from buddysim.training.schemes.cdma_study import NETWORKS, figure_11


@cache
def ratios(masks: bool, window: int = 4096) -> Any:
    """Figure 11's data."""
    from buddysim.training.contents.measured import measured

    return figure_11(measured(None), window=window, masks=masks)


def of(label: str, algorithm: str, layout: str = "NCHW", masks: bool = True, window: int = 4096) -> Any:
    """Ratios of a network, by the paper's name."""
    return next(r for r in ratios(masks, window)[label] if (r.codec.algorithm, r.codec.layout) == (algorithm, layout))


@measures("sparsity-alexnet", "sparsity-six", "sparsity-most")
def sparsity(runs: Runs, id: str) -> Ours:
    zeros = {label: 100 * (1 - (of(label, "zvc").density or 0)) for label in NETWORKS}
    amount = {
        "sparsity-alexnet": zeros["AlexNet"],
        "sparsity-six": mean(zeros.values()),
        "sparsity-most": max(zeros.values()),
    }
    return Ours(amount[id], said=listed(zeros))


@measures("zvc-average", "zlib-average")
def average_ratio(runs: Runs, id: str) -> Ours:
    algorithm = id.partition("-")[0]
    ours = {label: of(label, algorithm).average for label in NETWORKS}
    bare = mean(of(label, algorithm, masks=False).average for label in NETWORKS)
    said = listed(ours, "{:.2f}")
    return Ours(mean(ours.values()), said=said + (f"; without masks {bare:.2f}" if algorithm == "zvc" else ""))


@measures("zvc-largest")
def largest_ratio(runs: Runs) -> Ours:
    best = max((of(label, "zvc") for label in NETWORKS), key=lambda r: r.largest)
    bare = max(of(label, "zvc", masks=False).largest for label in NETWORKS)
    return Ours(best.largest, said=f"{best.network}, {best.largest_map}; without masks {bare:.1f}")


@measures("zvc-layouts", "zlib-layouts", "rle-layouts")
def layouts(runs: Runs, id: str) -> Ours:
    def averages(algorithm: str) -> list[float]:
        return [mean(of(label, algorithm, layout).average for label in NETWORKS) for layout in LAYOUTS]

    zvc_, zlib_, rle_ = averages("zvc"), averages("zlib"), averages("rle")
    said = "; ".join(
        f"{name} " + " ".join(f"{ratio:.2f}" for ratio in found)
        for name, found in (("ZVC", zvc_), ("zlib", zlib_), ("RLE", rle_))
    )
    found = {
        "zvc-layouts": "the same" if max(zvc_) - min(zvc_) < 1e-9 else "not the same",
        "zlib-layouts": "behind ZVC" if max(zlib_[1:]) < min(zvc_[1:]) else "ahead of ZVC",
        "rle-layouts": "best in NCHW" if rle_[0] == max(rle_) else "not best in NCHW",
    }
    return Ours(found[id], said=f"{', '.join(LAYOUTS)}: {said}")


LAYOUTS = ("NCHW", "NHWC", "CHWN")


@measures("windows")
def windows(runs: Runs) -> Ours:
    changes = {
        algorithm: 100
        * (mean(of(label, algorithm, window=65536).average / of(label, algorithm).average for label in NETWORKS) - 1)
        for algorithm in ("zvc", "rle", "zlib")
    }
    largest = max(abs(change) for change in changes.values())
    return Ours("hardly change" if largest <= 7 else "change", said=f"NCHW, in %: {listed(changes, '{:+.1f}')}")


@measures("zlib-traffic", "zlib-traffic-googlenet")
def zlib_traffic(runs: Runs, id: str) -> Ours:
    below = {label: 100 * (1 - of(label, "zlib").traffic / of(label, "zvc").traffic) for label in NETWORKS}
    return Ours(below["GoogLeNet"] if id.endswith("googlenet") else mean(below.values()), said=listed(below, "{:.1f}"))
