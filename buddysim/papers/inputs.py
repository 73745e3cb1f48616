"""Ours for what both papers say of machines, links and networks."""

from __future__ import annotations

from itertools import pairwise

from buddysim.figures.paper import DEEP, GIB
from buddysim.figures.runs import Runs
from buddysim.papers.numbers import Ours, measures


@measures("titan-x-flops", "titan-x-bandwidth", "titan-x-memory", "titan-xp-bandwidth", "host-memory")
def machine_figures(runs: Runs, id: str) -> Ours:
    from buddysim.machine.training import TrainingMachine

    titan_x, titan_xp = TrainingMachine.load("titan-x"), TrainingMachine.load("titan-xp")
    return Ours(
        {
            "titan-x-flops": titan_x.fp32_flops / 1e12,
            "titan-x-bandwidth": titan_x.dram_bytes_per_s / 1e9,
            "titan-x-memory": titan_x.memory_bytes / GIB,
            "titan-xp-bandwidth": titan_xp.dram_bytes_per_s / 1e9,
            "host-memory": titan_x.host_memory_bytes / GIB,
        }[id]
    )


@measures("pcie3-peak", "pcie3-effective", "shared-link")
def links(runs: Runs, id: str) -> Ours:
    from buddysim.machine.training import TrainingMachine

    name = {"pcie3-peak": "pcie3-peak", "pcie3-effective": "pcie3", "shared-link": "pcie3-shared"}[id]
    rates = TrainingMachine.load("titan-x").links[name]
    return Ours(rates.offload_bytes_per_s / 1e9, said=f"link `{name}`" + (", the default" if name == "pcie3" else ""))


@measures("page-migration")
def page_migration(runs: Runs) -> Ours:
    slow, fast = (4096 / us for us in (50, 20))  # bytes per microsecond: MB/s
    return Ours((round(slow, -1), round(fast, -2)), said=f"4096 B in 50 and 20 us: {slow:.0f} and {fast:.0f} MB/s")


@measures("vgg-convs")
def vgg_convs(runs: Runs) -> Ours:
    from buddysim.training import Network

    networks = [Network.load(name) for name in ("vgg19", *(name for _, name, _ in DEEP))]
    return Ours(tuple(float(sum(layer.kind == "conv" for layer in network.layers)) for network in networks))


@measures("vgg-added")
def vgg_added(runs: Runs) -> Ours:
    from buddysim.training import Network

    def groups(name: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for layer in Network.load(name).layers:
            if layer.kind == "conv":
                group = layer.name.partition("_")[0]
                counts[group] = counts.get(group, 0) + 1
        return counts

    names = ("vgg19", *(name for _, name, _ in DEEP))
    added = {
        groups(deeper)[group] - count for shallow, deeper in pairwise(names) for group, count in groups(shallow).items()
    }
    return Ours(float(added.pop()) if len(added) == 1 else None)
