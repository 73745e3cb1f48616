"""The machines, links and deep networks of the vDNN paper (Rhu et al., MICRO 2016)."""

from __future__ import annotations

from itertools import pairwise

from buddysim.machine.training import TrainingMachine
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.papers.vdnn.paper_networks import DEEP, GIB
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.named_network import load_network


@simulates("titan-x-flops", "titan-x-bandwidth", "titan-x-memory", "host-memory")
def gpu(training: SavedResults, id: str) -> SimulatedValue:
    titan_x = TrainingMachine.load("titan-x")
    values = {
        "titan-x-flops": titan_x.training.fp32 / 1e12,
        "titan-x-bandwidth": titan_x.dram_bytes_per_s / 1e9,
        "titan-x-memory": titan_x.memory_bytes / GIB,
        "host-memory": titan_x.host_memory_bytes / GIB,
    }
    return SimulatedValue(values[id])


@simulates("pcie3-peak", "pcie3-effective")
def links(training: SavedResults, id: str) -> SimulatedValue:
    name = {"pcie3-peak": "pcie3-peak", "pcie3-effective": "pcie3"}[id]
    rates = TrainingMachine.load("titan-x").links[name]
    return SimulatedValue(
        rates.offload_bytes_per_s / 1e9, note=f"link `{name}`" + (", the default" if name == "pcie3" else "")
    )


@simulates("page-migration")
def page_migration(training: SavedResults) -> SimulatedValue:
    slow, fast = (4096 / us for us in (50, 20))  # bytes per microsecond: MB/s
    return SimulatedValue(
        (round(slow, -1), round(fast, -2)), note=f"4096 B in 50 and 20 us: {slow:.0f} and {fast:.0f} MB/s"
    )


@simulates("vgg-convs")
def vgg_convs(training: SavedResults) -> SimulatedValue:
    networks = [load_network(name) for name in ("vgg19", *(name for _, name, _ in DEEP))]
    return SimulatedValue(tuple(float(sum(layer.kind == "conv" for layer in network.layers)) for network in networks))


@simulates("vgg-added")
def vgg_added(training: SavedResults) -> SimulatedValue:
    def groups(name: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for layer in load_network(name).layers:
            if layer.kind == "conv":
                group = layer.name.partition("_")[0]
                counts[group] = counts.get(group, 0) + 1
        return counts

    names = ("vgg19", *(name for _, name, _ in DEEP))
    added = {
        groups(deeper)[group] - count for shallow, deeper in pairwise(names) for group, count in groups(shallow).items()
    }
    return SimulatedValue(float(added.pop()) if len(added) == 1 else None)
