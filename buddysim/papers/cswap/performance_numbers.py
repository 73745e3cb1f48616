"""Speedup of CSWAP over vDNN, vDNN++, static compression and the oracle (Fig. 6, 7), and its causes."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from buddysim.machine.training import TrainingMachine
from buddysim.papers.cswap.iterations import PAPER, result, saved_percent, throughput, times_ms
from buddysim.papers.cswap.paper_networks import (
    BATCHES,
    BELOW,
    CASES,
    CSWAP,
    HOST,
    LINK,
    NETWORKS,
    ORACLE,
    STATIC,
    V100,
    ZOO,
    Case,
)
from buddysim.papers.reported_values import reported_value as reported_value
from buddysim.papers.simulated_values import SimulatedValue, format_by_network, simulates
from buddysim.sweep.cached_results import Result, SavedResults

PANELS = {case.panel: case for case in CASES}
#: Nobody published these inputs; what each changes is in the notes.
_UNPUBLISHED = "sparsities (of reduced networks on Fashion-MNIST, cswap.md) and kernels are buddysim's"


def _note(simulated: dict[str, float], papers: dict[str, float]) -> str:
    return f"{format_by_network(simulated)}; with the paper's codec times {format_by_network(papers)}"


def _cause(training: SavedResults, case: Case) -> str:
    free = times_ms(training, case, ORACLE)
    below = times_ms(training, case, BELOW)
    saved = fmean(100 * (1 - free[label] / below[label]) for label in free)
    return f"{_UNPUBLISHED}: free compression saves {saved:.0f} % on average"


@simulates("6a-gain", "6a-gain-vdnnpp", "6a-vdnnpp-alexnet")
def gains(training: SavedResults, id: str) -> SimulatedValue:
    over = HOST if "vdnnpp" in id else BELOW
    simulated, papers = (throughput(training, PANELS["6a"], over, *source) for source in ((), (PAPER,)))
    value = simulated["AlexNet"] if id.endswith("alexnet") else fmean(simulated.values())
    host = "; 0.05 GB/s for each of the host's 64 threads, assumed" if over == HOST else ""
    return SimulatedValue(value, _note(simulated, papers) + host, _cause(training, PANELS["6a"]) + host)


@simulates("6a-vdnnpp-resnet")
def resnet_over_host(training: SavedResults) -> SimulatedValue:
    case = PANELS["6a"]
    value = times_ms(training, case, HOST)["ResNet"] - times_ms(training, case, CSWAP)["ResNet"]
    return SimulatedValue(value, "resnet20", f"{_UNPUBLISHED}, the host's rate is assumed: 3.2 GB/s in all")


@simulates("6a-time-most", "6a-alexnet", "6a-plain20", "6a-others", "6c-time", "6d-time", "time-average", "time-most")
def saved(training: SavedResults, id: str) -> SimulatedValue:
    panels_of_id = {"time-average": ("6a", "6c"), "time-most": ("6a", "6b", "6c", "6d")}.get(id, (id[:2],))
    simulated: dict[str, float] = {}
    papers: dict[str, float] = {}
    for panel in panels_of_id:
        simulated |= {f"{label} {panel}": v for label, v in saved_percent(training, PANELS[panel]).items()}
        papers |= {f"{label} {panel}": v for label, v in saved_percent(training, PANELS[panel], PAPER).items()}
    by_id = {
        "6a-alexnet": ["AlexNet 6a"],
        "6a-plain20": ["Plain20 6a"],
        "6a-others": [key for key in simulated if key.split()[0] not in ("AlexNet", "Plain20")],
    }
    selected = [simulated[key] for key in by_id.get(id, list(simulated))]
    value = fmean(selected) if id in ("6c-time", "6d-time", "time-average") else max(selected)
    return SimulatedValue(value, _note(simulated, papers), _cause(training, PANELS[panels_of_id[0]]))


@simulates("6a-operations")
def operations(training: SavedResults) -> SimulatedValue:
    counts = {
        label: [_compressions(training, PANELS["6a"], label, scheme) for scheme in (CSWAP, ORACLE)]
        for label in NETWORKS
    }
    same = all(cswap == free for cswap, free in counts.values())
    text = ", ".join(f"{label} {cswap} of {free}" for label, (cswap, free) in counts.items())
    return SimulatedValue("as many" if same else "fewer", note=text, cause=f"compressed, of the oracle's: {text}")


def _compressions(training: SavedResults, case: Case, label: str, scheme: str) -> int:
    notes = result(training, case, label, scheme)["provenance"]["decisions"]
    return int(next(note for note in notes if note.startswith("compressed: ")).split()[1])


@simulates("6a-oracle")
def relative_to_the_oracle(training: SavedResults) -> SimulatedValue:
    case = PANELS["6a"]
    free = times_ms(training, case, ORACLE)
    simulated = {k: 100 * (v / free[k] - 1) for k, v in times_ms(training, case, CSWAP).items()}
    papers = {k: 100 * (v / free[k] - 1) for k, v in times_ms(training, case, CSWAP, PAPER).items()}
    return SimulatedValue(
        max(simulated.values()),
        _note(simulated, papers),
        f"the simulated kernels take at most {max(simulated.values()):.0f} %",
    )


@simulates("transfer-alexnet", "transfer-plain20", "transfer-others")
def transfers(training: SavedResults, id: str) -> SimulatedValue:
    results = {label: result(training, PANELS["6a"], label, BELOW) for label in NETWORKS}
    percents = {label: 100 * one["stall_ms"] / one["time_ms"] for label, one in results.items()}
    named = {"transfer-alexnet": "AlexNet", "transfer-plain20": "Plain20"}
    if id in named:
        value, needed = percents[named[id]], _max_computing(results[named[id]], reported_value(id))
    else:
        others = {label: one for label, one in results.items() if label not in named.values()}
        value, needed = max(percents[label] for label in others), _min_computing(others, reported_value(id))
    return SimulatedValue(value, format_by_network(percents), f"stall time: {format_by_network(percents)}; {needed}")


def _max_computing(one: Result, percent: float) -> str:
    """Return the computing time that a reported percentage of transfers implies."""
    copies, computing = _copies_ms(one), one["compute_ms"]
    apart = 100 * copies / (copies + computing)
    return (
        f"its copies take {copies:.0f} ms next to {computing:.0f} of computing: {apart:.0f} % "
        f"if nothing overlapped; {percent:.0f} % need at most {copies * (100 / percent - 1) / computing:.2f} of that "
        "computing"
    )


def _min_computing(results: Mapping[str, Result], percent: float) -> str:
    """Return how much longer computing has to take for a smaller percentage of transfers, with perfect overlap."""
    texts = []
    for label, one in results.items():
        copies, computing = _copies_ms(one), one["compute_ms"]
        least = copies * (1 - percent / 100) / computing
        if least > 1:
            texts.append(f"{label} {least:.1f} times (copies {copies:.0f} ms, computing {computing:.0f})")
    return f"for {percent:.0f} %, however well copies overlap, computing would have to take longer: {', '.join(texts)}"


def _copies_ms(one: Result) -> float:
    """Return the link's time of both directions in sequence."""
    link = TrainingMachine.load(V100).links[LINK]
    return float(
        1e3 * (one["offload.bytes"] / link.offload_bytes_per_s + one["prefetch.bytes"] / link.prefetch_bytes_per_s)
    )


@simulates("6b-against-6a")
def lower_on_the_2080_ti(training: SavedResults) -> SimulatedValue:
    faster, slower = (throughput(training, PANELS[panel], BELOW) for panel in ("6a", "6b"))
    drops = {label: 100 * (1 - (100 + slower[label]) / (100 + faster[label])) for label in slower}
    return SimulatedValue(
        fmean(drops.values()), format_by_network(drops), f"{_UNPUBLISHED}: {format_by_network(drops)}"
    )


@simulates("plain20-2080ti")
def plain20(training: SavedResults) -> SimulatedValue:
    case = PANELS["6d"]
    one = result(training, case, "Plain20", BELOW)
    peak, batch = one["memory.peak_bytes"] / 2**30, BATCHES[V100, case.dataset]["Plain20"]
    more = training.result(ZOO[case.dataset]["Plain20"], batch, BELOW, case.machine, link=LINK)
    capacity = TrainingMachine.load(V100).memory_bytes / 2**30
    return SimulatedValue(
        "fits" if one["fits"] else "does not fit",
        f"{peak:.2f} GiB",
        f"at batch 1 it peaks at {peak:.2f} GiB, at {batch} at {more['memory.peak_bytes'] / 2**30:.2f} of 11; the "
        f"paper trains {batch} on the V100 (Tab. III), whose {capacity:.0f} GiB leave {capacity / batch:.0f} for each",
    )


@simulates("latency-v100", "latency-2080ti")
def latency(training: SavedResults, id: str) -> SimulatedValue:
    panels = ("6a", "6c") if id == "latency-v100" else ("6b", "6d")
    by_network = {}
    for panel in panels:
        for label in times_ms(training, PANELS[panel], BELOW):
            swap = [_swapping_ms(training, PANELS[panel], label, scheme) for scheme in (BELOW, CSWAP)]
            by_network[f"{label} {panel}"] = 100 * (1 - swap[1] / swap[0]) if swap[0] else 0.0
    return SimulatedValue(
        max(by_network.values()), format_by_network(by_network), f"{_UNPUBLISHED}: {format_by_network(by_network)}"
    )


def _swapping_ms(training: SavedResults, case: Case, label: str, scheme: str) -> float:
    """Time beyond the computations that every scheme makes: stalls and codecs."""
    return float(result(training, case, label, scheme)["time_ms"] - result(training, case, label, ORACLE)["oracle_ms"])


@simulates("7-v100", "7-2080ti", "7-v100-most", "7-2080ti-most", "7-plain20")
def relative_to_static(training: SavedResults, id: str) -> SimulatedValue:
    panels = ("6b", "6d") if "2080ti" in id else ("6a", "6c")
    simulated, papers = (faster_than_static(training, panels, *source) for source in ((), (PAPER,)))
    note = _note(simulated, papers)
    if id == "7-plain20":
        same = all(abs(v) < 1 for k, v in simulated.items() if k.startswith("Plain20"))
        return SimulatedValue("the same" if same else "faster", note, note)
    selected = [value for key, value in simulated.items() if not key.startswith("Plain20")]
    value = max(selected) if id.endswith("most") else fmean(selected)
    others = [value for key, value in papers.items() if not key.startswith("Plain20")]
    return SimulatedValue(
        value, note,
        "the simulated kernels are so fast that compressing everything costs nothing more; with the paper's codec "
        "times "
        f"{max(others) if id.endswith('most') else fmean(others):.1f} %",
    )  # fmt: skip


def faster_than_static(training: SavedResults, panels: tuple[str, ...], *source: str) -> dict[str, float]:
    """Return the time that CSWAP saves relative to static compression, in per cent."""
    percents: dict[str, float] = {}
    for panel in panels:
        simulated = times_ms(training, PANELS[panel], CSWAP, *source)
        static = times_ms(training, PANELS[panel], STATIC, *source)
        percents |= {f"{label} {panel}": 100 * (1 - simulated[label] / static[label]) for label in simulated}
    return percents
