"""The speed of vDNN and cDMA, as the cDMA paper has it (Rhu et al., HPCA 2018)."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

from buddysim.machine.training import TrainingMachine
from buddysim.papers.cdma.networks import NETWORKS
from buddysim.papers.cdma.ratios import network_ratios
from buddysim.papers.measured import Measured, by_network, loss_percent, measures
from buddysim.papers.saved import SavedResults
from buddysim.training import Network, schemes
from buddysim.training.cost import CostModel
from buddysim.training.driver import carry_out, make_options
from buddysim.training.schemes import cdma

LINK = "pcie3"  # the rate that copies reach (Sec. III)
PEAK = "pcie3-peak"  # the rate that the engine is designed for (Sec. V)
STATED_DENSITY = 0.38  # 62 % zeros (Sec. IV-B)
CUDNN = {"titan-x": "cudnn5", "titan-xp": "cudnn5"}  # Sec. VI


def performance(training: SavedResults, machine: str, scheme: str, **options: Any) -> dict[str, float]:
    """Performance over the oracle's in per cent, of the feature layers, by the paper's name of the network."""
    options = {"link": LINK, "library": CUDNN[machine], **options}
    return {
        label: 100 - loss_percent(training.result(name, batch, scheme, machine, **options))
        for label, (name, batch) in NETWORKS.items()
    }


@measures("vdnn-loss", "vdnn-loss-most")
def vdnn_loss(training: SavedResults, id: str) -> Measured:
    pick = max if id.endswith("most") else fmean
    lost, by_link = {}, []
    for machine in ("titan-x", "titan-xp"):
        for link in (LINK, PEAK):
            found = {
                label: 100 - kept for label, kept in performance(training, machine, "vdnn-all-p", link=link).items()
            }
            lost[machine, link] = found
            by_link.append(f"{machine}, {link}: {pick(found.values()):.0f}")
    ours = lost["titan-xp", LINK]
    return Measured(
        pick(ours.values()),
        note=f"Titan Xp, {LINK} ({by_network(ours)}); {', '.join(by_link)}",
        cause=concat_cause(training, "titan-xp"),
    )


def concat_cause(training: SavedResults, machine: str) -> str:
    """How much of the loss the inputs of concat layers explain."""
    scheme, label = "vdnn-all-p", "SqueezeNet"
    name, batch = NETWORKS[label]
    result = training.result(name, batch, scheme, machine, link=LINK, library=CUDNN[machine])
    concat_bytes = sum(row["offload_bytes"] for row in result["per_layer"] if row["kind"] == "concat")
    less = 100 - performance_without_concat(name, batch, machine, scheme)
    zv = performance_without_concat(name, batch, machine, "cdma-zv", density=STATED_DENSITY, masks=False)
    return (
        f"it is {label}: {concat_bytes / 1e9:.1f} of the {result['offload.bytes'] / 1e9:.1f} GB that it offloads are X "
        f"of concat layers. If these stay on the GPU (a framework whose layers write into the joined map has no such "
        f"X), it loses {less:.0f} % instead of {loss_percent(result):.0f} on `{machine}`, "
        f"and cDMA gains {100 * (zv / (100 - less) - 1):.0f} %"
    )


def performance_without_concat(name: str, batch: int, machine_name: str, scheme: str, **options: Any) -> float:
    """Performance over the oracle's in per cent, where X of concat layers isn't offloaded."""
    network, machine = Network.load(name), TrainingMachine.load(machine_name)
    chosen = make_options(link=LINK, library=CUDNN[machine_name], **options)
    cost = CostModel.load(machine, chosen.library)
    plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine, cost, scheme, chosen)
    kept = frozenset(index for index in plan.offload if network.layers[index].kind != "concat")
    return 100 * carry_out(network, batch, machine, cost, replace(plan, offload=kept), chosen).features.time_vs_oracle


@measures("cudnn5-speed")
def cudnn5(training: SavedResults) -> Measured:
    return Measured(None, note="cuDNN 1 isn't calibrated: its timings aren't among the published ones that we have")


@measures("gain-titan-x", "gain-titan-x-most", "gain-titan-xp", "gain-titan-xp-most")
def gain(training: SavedResults, id: str) -> Measured:
    machine = "titan-xp" if "xp" in id else "titan-x"
    pick = max if id.endswith("most") else fmean
    stated = gains(training, machine, "cdma-zv", density=STATED_DENSITY, masks=False)
    with_our_maps = gains(training, machine, "cdma-zv")
    return Measured(
        pick(stated.values()),
        note=f"62 % zeros everywhere, masks not counted: {by_network(stated)}; "
        f"with our measured maps {pick(with_our_maps.values()):.0f}",
        cause=concat_cause(training, machine),
    )


def gains(training: SavedResults, machine: str, scheme: str, **options: Any) -> dict[str, float]:
    """How much faster than vDNN, in per cent."""
    below, above = performance(training, machine, "vdnn-all-p"), performance(training, machine, scheme, **options)
    return {label: 100 * (above[label] / below[label] - 1) for label in NETWORKS}


@measures("bw-aware", "cap-benefit", "zlib-faster", "zlib-faster-most")
def against_zvc(training: SavedResults, id: str) -> Measured:
    machine = "titan-x"
    zvc = performance(training, machine, "cdma-zv")
    if id == "cap-benefit":
        return cap_benefit(training, machine, zvc)
    other = performance(training, machine, "cdma-bw" if id == "bw-aware" else "cdma-zl")
    relative = {label: 100 * other[label] / zvc[label] for label in NETWORKS}
    if id == "bw-aware":
        best = {
            label: 100 * other[label] / max(zvc[label], performance(training, machine, "cdma-zl")[label])
            for label in NETWORKS
        }
        return Measured(fmean(best.values()), note=f"our measured maps: {by_network(best)}")
    faster = {label: kept - 100 for label, kept in relative.items()}
    amount = max(faster.values()) if id.endswith("most") else fmean(faster.values())
    return Measured(amount, note=f"our measured maps: {by_network(faster, '{:.1f}')}")


def cap_benefit(training: SavedResults, machine: str, zvc: dict[str, float]) -> Measured:
    """The share of compression's gain that the cap on read bandwidth leaves: it limits ratios above 200 / 16."""
    largest = {label: network_ratios(label, "zvc").largest for label in NETWORKS}
    vdnn, kept = performance(training, machine, "vdnn-all-p"), {}
    for label, (name, batch) in NETWORKS.items():
        uncapped = uncapped_performance(name, batch, machine)
        kept[label] = 100 * (zvc[label] - vdnn[label]) / (uncapped - vdnn[label]) if uncapped > vdnn[label] else 100.0
    return Measured(
        fmean(kept.values()),
        note=f"{by_network(kept)}; largest ratios {by_network(largest, '{:.1f}')}, capped from 12.5",
    )


def uncapped_performance(name: str, batch: int, machine_name: str) -> float:
    """Performance of cdma-zv over the oracle's in per cent, without a cap on read bandwidth."""
    network, machine = Network.load(name), TrainingMachine.load(machine_name)
    options = make_options(link=LINK, library=CUDNN[machine_name])
    cost = CostModel.load(machine, options.library)
    plan = cdma.plan(network, batch, machine, cost, "cdma-zv", options)
    assert isinstance(plan.compression, cdma.CompressedCopies)
    free = replace(plan, compression=replace(plan.compression, cap_bytes_per_s=10**15))
    return 100 * carry_out(network, batch, machine, cost, free, options).features.time_vs_oracle
