"""Tensors that CSWAP compresses (Fig. 3, 8, 9), and the accuracy of its decisions (Fig. 11)."""

from __future__ import annotations

from statistics import fmean

from buddysim.papers.cswap.iterations import PAPER, SIMULATED, accuracy_percent, decisions, epochs, training_text
from buddysim.papers.cswap.paper_networks import CASES, NETWORKS, TENSORS
from buddysim.papers.cswap.tensor_numbers import VGG16
from buddysim.papers.simulated_values import SimulatedValue, format_by_network, simulates
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.schemes.cswap import CodecDecision

#: Milliseconds that a byte takes both ways on the V100's link.
_BOTH_WAYS = 1e3 / 11.7e9 + 1e3 / 10.6e9


def swapping_ms(codec_times: str = SIMULATED) -> dict[str, tuple[float, float, float]]:
    """Return for each tensor of VGG16 (128) the time of copies without compression, and of copies and codec with it."""
    return {
        TENSORS[one.layer.name]: (one.byte_count * _BOTH_WAYS, *_coded_ms(one))
        for one in decisions(*VGG16, codec_times)
    }


def swapped_ms(codec: str) -> list[tuple[float, float]]:
    """Copies and codec of each tensor of VGG16 (128), all compressed by one codec at its best launch."""
    return [_coded_ms(one) for one in decisions(*VGG16, codec=codec)]


def _coded_ms(one: CodecDecision) -> tuple[float, float]:
    return one.encoding.byte_count * _BOTH_WAYS, (one.encoding.encode_ps + one.encoding.decode_ps) / 1e9


@simulates("sc-worse")
def worse(training: SavedResults) -> SimulatedValue:
    worse = {source: _worse(source) for source in (SIMULATED, PAPER)}
    shown = {source: ", ".join(names) or "none" for source, names in worse.items()}
    count = f"{len(worse[SIMULATED])} of {len(TENSORS)}, with the paper's codec times {len(worse[PAPER])}"
    return SimulatedValue(
        shown[SIMULATED],
        f"with the paper's codec times {shown[PAPER]}",
        f"the simulated kernels are faster: {count}; {training_text('VGG16')}",
    )


def _worse(source: str) -> list[str]:
    return [name for name, (plain, copies, codec) in swapping_ms(source).items() if copies + codec > plain]


@simulates("sc-codec-share")
def codec_percent(training: SavedResults) -> SimulatedValue:
    percents = {}
    for source in (SIMULATED, PAPER):
        codec, copies = (sum(row[column] for row in swapping_ms(source).values()) for column in (2, 1))
        percents[source] = 100 * codec / (codec + copies)
    note = f"with the paper's codec times {percents[PAPER]:.0f}"
    return SimulatedValue(percents[SIMULATED], note, f"the simulated kernels are faster; {note} %")


def compressed(label: str = "VGG16", codec_times: str = SIMULATED) -> dict[float, list[str]]:
    """The layers that are compressed, by epoch of buddysim's training."""
    return {
        epoch: [one.layer.name for one in decisions(CASES[2], label, codec_times, epoch) if one.compress]
        for epoch in epochs(label)
    }


@simulates("8-vgg16", "8-never", "8-grows")
def over_epochs(training: SavedResults, id: str) -> SimulatedValue:
    layers_by_source = {source: list(compressed(codec_times=source).values()) for source in (SIMULATED, PAPER)}
    counts = {source: [len(names) for names in by_epoch] for source, by_epoch in layers_by_source.items()}
    note = f"{training_text('VGG16')}; with the paper's codec times {counts[PAPER][0]} to {counts[PAPER][-1]}"
    simulated = counts[SIMULATED]
    pay = f"{simulated[0]} of {len(TENSORS)} pay at the start, {simulated[-1]} at the end"
    if id == "8-vgg16":
        return SimulatedValue(
            (float(simulated[0]), float(simulated[-1])), note, f"the simulated kernels are fast: {pay}; {note}"
        )
    if id == "8-grows":
        trend = {source: _trend(numbers) for source, numbers in counts.items()}
        return SimulatedValue(
            trend[SIMULATED], f"{note}: {trend[PAPER]}", f"the simulated kernels are fast: {pay}; {note}"
        )
    never = {source: _never(names) for source, names in layers_by_source.items()}
    return SimulatedValue(
        never[SIMULATED],
        f"with the paper's codec times {never[PAPER]}",
        f"the simulated kernels are fast: {pay}; {note}",
    )


def _trend(counts: list[int]) -> str:
    return "grows" if counts[-1] > counts[0] else "shrinks" if counts[-1] < counts[0] else "stays"


def _never(by_epoch: list[list[str]]) -> str:
    ever = {name for names in by_epoch for name in names}
    return ", ".join(label for name, label in TENSORS.items() if name not in ever) or "none"


@simulates("11-accuracy")
def accuracy(training: SavedResults) -> SimulatedValue:
    accuracies = {
        source: {label: accuracy_percent(CASES[2], label, source) for label in NETWORKS}
        for source in (SIMULATED, PAPER)
    }
    return SimulatedValue(
        fmean(accuracies[SIMULATED].values()),
        f"{format_by_network(accuracies[SIMULATED])}; with the paper's codec times "
        f"{format_by_network(accuracies[PAPER])}",
        "each decision flipped, the others as they are",
    )
