"""Compression ratios of the cDMA paper's networks, with the densities of buddysim's training."""

from __future__ import annotations

from functools import cache
from statistics import fmean

from buddysim.compress.layouts import LAYOUTS
from buddysim.papers.cdma.offloaded_maps import OffloadRatios, ratios_by_network
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.simulated_values import SimulatedValue, format_by_network, simulates
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.contents.observed_activations import observed_activations


@cache
def ratios(masks: bool, window: int = 4096) -> dict[str, list[OffloadRatios]]:
    """The data of Fig. 11."""
    return ratios_by_network(observed_activations(None), window=window, masks=masks)


def network_ratios(
    label: str, algorithm: str, layout: str = "NCHW", masks: bool = True, window: int = 4096
) -> OffloadRatios:
    """Ratios of the network that the paper calls `label`."""
    return next(r for r in ratios(masks, window)[label] if (r.codec.algorithm, r.codec.layout) == (algorithm, layout))


@simulates("sparsity-alexnet", "sparsity-six", "sparsity-most")
def sparsity(training: SavedResults, id: str) -> SimulatedValue:
    zeros = {label: 100 * (1 - (network_ratios(label, "zvc").density or 0)) for label in NETWORKS}
    amount = {
        "sparsity-alexnet": zeros["AlexNet"],
        "sparsity-six": fmean(zeros.values()),
        "sparsity-most": max(zeros.values()),
    }
    return SimulatedValue(amount[id], note=format_by_network(zeros))


@simulates("zvc-average", "zlib-average")
def average_ratio(training: SavedResults, id: str) -> SimulatedValue:
    algorithm = id.partition("-")[0]
    averages_by_network = {label: network_ratios(label, algorithm).average for label in NETWORKS}
    bare = fmean(network_ratios(label, algorithm, masks=False).average for label in NETWORKS)
    note = format_by_network(averages_by_network, "{:.2f}")
    return SimulatedValue(
        fmean(averages_by_network.values()), note=note + (f"; without masks {bare:.2f}" if algorithm == "zvc" else "")
    )


@simulates("zvc-largest")
def largest_ratio(training: SavedResults) -> SimulatedValue:
    best = max((network_ratios(label, "zvc") for label in NETWORKS), key=lambda r: r.largest)
    bare = max(network_ratios(label, "zvc", masks=False).largest for label in NETWORKS)
    return SimulatedValue(best.largest, note=f"{best.network}, {best.largest_map}; without masks {bare:.1f}")


@simulates("zvc-layouts", "zlib-layouts", "rle-layouts")
def layouts(training: SavedResults, id: str) -> SimulatedValue:
    def averages(algorithm: str) -> list[float]:
        return [fmean(network_ratios(label, algorithm, layout).average for label in NETWORKS) for layout in LAYOUTS]

    zvc, zlib, rle = averages("zvc"), averages("zlib"), averages("rle")
    note = "; ".join(
        f"{name} " + " ".join(f"{ratio:.2f}" for ratio in layout_ratios)
        for name, layout_ratios in (("ZVC", zvc), ("zlib", zlib), ("RLE", rle))
    )
    texts_by_id = {
        "zvc-layouts": "the same" if max(zvc) - min(zvc) < 1e-9 else "not the same",
        "zlib-layouts": "behind ZVC" if max(zlib[1:]) < min(zvc[1:]) else "ahead of ZVC",
        "rle-layouts": "best in NCHW" if rle[0] == max(rle) else "not best in NCHW",
    }
    return SimulatedValue(texts_by_id[id], note=f"{', '.join(LAYOUTS)}: {note}")


@simulates("windows")
def windows(training: SavedResults) -> SimulatedValue:
    changes = {
        algorithm: 100
        * (
            fmean(
                network_ratios(label, algorithm, window=65536).average / network_ratios(label, algorithm).average
                for label in NETWORKS
            )
            - 1
        )
        for algorithm in ("zvc", "rle", "zlib")
    }
    largest = max(abs(change) for change in changes.values())
    return SimulatedValue(
        "hardly change" if largest <= 7 else "change", note=f"NCHW, in %: {format_by_network(changes, '{:+.1f}')}"
    )


@simulates("zlib-traffic", "zlib-traffic-googlenet")
def zlib_traffic(training: SavedResults, id: str) -> SimulatedValue:
    below = {
        label: 100 * (1 - network_ratios(label, "zlib").traffic / network_ratios(label, "zvc").traffic)
        for label in NETWORKS
    }
    return SimulatedValue(
        below["GoogLeNet"] if id.endswith("googlenet") else fmean(below.values()),
        note=format_by_network(below, "{:.1f}"),
    )
