"""Performance of vDNN and cDMA, as the cDMA paper reports it (Rhu et al., HPCA 2018).

The paper leaves two points open. The choices, and their reasons:

- Every offloaded feature map but the input images has 62 % zeros: the average over the entire networks (Sec. IV-B). It
  gives the ratio of 2.6 that Sec. VII-A reports for all that is offloaded, pooled feature maps included. The other
  reading has 62 % zeros behind every ReLU; feature maps behind a pooling layer are then denser, and ratios lower.
- X of a concatenation isn't offloaded: neither paper has it among the kinds of layers (vDNN II-A, cDMA II-A); a join is
  a dependency between layers (vDNN II-B, Fig. 3), and what is offloaded are X of CONV and POOL layers (vDNN III-B). The
  joined feature map is offloaded as X of the layer behind. The other reading offloads both: the paper's networks are
  Caffe's, whose concatenation is a layer that copies, and "all" is said of all layers (vDNN III-C, cDMA VI).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from statistics import fmean

from buddysim.machine.training import TrainingMachine
from buddysim.papers.cdma.offloaded_maps import offloaded_maps
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.cdma.ratios import network_ratios
from buddysim.papers.simulated_values import SimulatedValue, format_by_network, simulates
from buddysim.sweep.cached_results import SavedResults
from buddysim.training import Network, schemes
from buddysim.training.contents import Codec, MapContents, mean_compressed_fraction
from buddysim.training.contents.generated import GeneratedContents
from buddysim.training.cost import CostModel
from buddysim.training.driver import simulate_plan
from buddysim.training.named_network import load_network
from buddysim.training.request import make_options
from buddysim.training.schemes import cdma

LINK = "pcie3"  # the rate that copies reach (Sec. III)
PEAK = "pcie3-peak"  # the rate that the engine is designed for (Sec. V)
REPORTED_DENSITY = 0.38  # 62 % zeros (Sec. IV-B)
LIBRARY = "cudnn5"  # Sec. VI
REPORTED, BEHIND_RELU, OBSERVED = "reported", "behind ReLU", "observed"


@cache
def performance(
    machine_name: str,
    scheme: str,
    *,
    contents: str = OBSERVED,
    concat: bool = False,
    link: str = LINK,
    capped: bool = True,
) -> dict[str, float]:
    """Performance over the oracle's in per cent, of the feature layers, by the paper's name of the network.

    Parameters
    ----------
    contents : contents of feature maps, for schemes that compress them: ``REPORTED``, 62 % zeros in
        all but input images;
        ``BEHIND_RELU``, the same behind every ReLU, generated; ``OBSERVED``, those of buddysim's training
    concat : X of concatenations is offloaded
    capped : the engine's read bandwidth is bounded
    """
    machine = TrainingMachine.load(machine_name)
    contents_options = {"synthetic_density": REPORTED_DENSITY, "mask_bytes": False} if contents == BEHIND_RELU else {}
    options = make_options(link=link, conv_library=LIBRARY, **contents_options)
    cost = CostModel.load(machine, LIBRARY)
    by_network = {}
    for label, (name, batch) in NETWORKS.items():
        network = load_network(name)
        plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine, cost, scheme, options)
        stash = plan.stash
        if not concat:
            last = {owner: network.layers[network.last_consumer(owner)] for owner in stash}
            stash = {owner: entry for owner, entry in stash.items() if last[owner].kind != "concat"}
        if scheme in cdma.SUMMARY:
            copies = cdma.scheme_copies(network, batch, machine, options, scheme)
            if contents == REPORTED:
                copies = replace(copies, contents=reported_contents(network))
            if not capped:
                copies = replace(copies, cap_bytes_per_s=10**15)
            stash = copies.compressed_stashes(stash, network, batch)
        plan = replace(plan, stash=stash)
        by_network[label] = (
            100 * simulate_plan(network, batch, machine, cost, plan, options).feature_layers.performance_vs_oracle
        )
    return by_network


def reported_contents(network: Network) -> dict[int, MapContents]:
    """Return contents with 62 % zeros in every feature map but the input images, masks not counted."""
    image, sparse = (MapContents(density, density, "reported") for density in (1.0, REPORTED_DENSITY))
    return {layer.index: image if layer.kind == "input" else sparse for layer in network.layers}


@cache
def mean_ratio(contents: str) -> float:
    """Mean over the networks of the ratio of all offloaded feature maps but the input images, masks not counted."""
    ratios = []
    for name, batch in NETWORKS.values():
        network = load_network(name)
        maps = {index: size for index, size in offloaded_maps(network, batch).items() if index}
        source = GeneratedContents(REPORTED_DENSITY)
        known = source.contents(network, batch, Codec(masks=False)) if contents == BEHIND_RELU else None
        ratios.append(1 / mean_compressed_fraction(known or reported_contents(network), maps))
    return fmean(ratios)


@simulates("vdnn-loss", "vdnn-loss-most")
def vdnn_loss(training: SavedResults, id: str) -> SimulatedValue:
    pick = max if id.endswith("most") else fmean
    by_link = [
        f"{machine}, {link}: {pick(losses(machine, link=link).values()):.0f}"
        for machine in ("titan-x", "titan-xp")
        for link in (LINK, PEAK)
    ]
    simulated = losses("titan-xp")
    return SimulatedValue(
        pick(simulated.values()),
        note=f"Titan Xp, {LINK} ({format_by_network(simulated)}); {', '.join(by_link)}; with X of concatenations "
        "offloaded "
        f"{pick(losses('titan-xp', concat=True).values()):.0f}",
    )


def losses(machine: str, *, concat: bool = False, link: str = LINK) -> dict[str, float]:
    """Return the performance loss of vDNN relative to the oracle, in per cent."""
    relative = performance(machine, "vdnn-all-p", concat=concat, link=link)
    return {label: 100 - amount for label, amount in relative.items()}


@simulates("cudnn5-speed")
def cudnn5(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(
        None, note="cuDNN 1 isn't calibrated: its timings aren't among the published ones that we have"
    )


@simulates("gain-titan-x", "gain-titan-x-most", "gain-titan-xp", "gain-titan-xp-most")
def gain(training: SavedResults, id: str) -> SimulatedValue:
    machine = "titan-xp" if "xp" in id else "titan-x"
    pick: Callable[..., float] = max if id.endswith("most") else fmean
    simulated = gains(machine, REPORTED)

    def other(contents: str, concat: bool = False) -> str:
        return f"{pick(gains(machine, contents, concat).values()):.0f}"

    return SimulatedValue(
        pick(simulated.values()),
        note="62 % zeros in every feature map except the images, masks not counted, a mean ratio of "
        f"{mean_ratio(REPORTED):.2f}: "
        f"{format_by_network(simulated)}; with X of concatenations offloaded {other(REPORTED, True)}; "
        f"with 62 % zeros behind ReLU alone (pooled feature maps are denser: "
        f"{mean_ratio(BEHIND_RELU):.2f}) {other(BEHIND_RELU)}; with both "
        f"{other(BEHIND_RELU, True)}; with the observed feature maps {other(OBSERVED)}",
        cause=f"it is {max(simulated, key=lambda label: simulated[label])}, which loses "
        f"{max(losses(machine).values()):.0f} % under vDNN; with X of concatenations offloaded too it would lose "
        f"{max(losses(machine, concat=True).values()):.0f} and gain {other(REPORTED, True)} %",
    )


@cache
def gains(machine: str, contents: str, concat: bool = False) -> dict[str, float]:
    """Return the speedup of cDMA with ZVC over vDNN, in per cent."""
    below = performance(machine, "vdnn-all-p", concat=concat)
    above = performance(machine, "cdma-zv", contents=contents, concat=concat)
    return {label: 100 * (above[label] / below[label] - 1) for label in NETWORKS}


@simulates("bw-aware", "zlib-faster", "zlib-faster-most")
def zlib_versus_zvc(training: SavedResults, id: str) -> SimulatedValue:
    machine = "titan-x"
    zvc, zlib = performance(machine, "cdma-zv"), performance(machine, "cdma-zl")
    if id == "bw-aware":
        slower = performance(machine, "cdma-bw")
        best = {label: 100 * slower[label] / max(zvc[label], zlib[label]) for label in NETWORKS}
        return SimulatedValue(fmean(best.values()), note=f"observed feature maps: {format_by_network(best)}")
    faster = {label: 100 * zlib[label] / zvc[label] - 100 for label in NETWORKS}
    amount = max(faster.values()) if id.endswith("most") else fmean(faster.values())
    return SimulatedValue(amount, note=f"observed feature maps: {format_by_network(faster, '{:.1f}')}")


@simulates("cap-benefit")
def cap_benefit(training: SavedResults) -> SimulatedValue:
    """The percentage of compression's gain that the cap on read bandwidth leaves: it limits ratios above 200 / 16."""
    machine = "titan-x"
    largest = {label: network_ratios(label, "zvc").largest for label in NETWORKS}
    vdnn, zvc = performance(machine, "vdnn-all-p"), performance(machine, "cdma-zv")
    free, retained = performance(machine, "cdma-zv", capped=False), {}
    for label in NETWORKS:
        gained = free[label] - vdnn[label]
        retained[label] = 100 * (zvc[label] - vdnn[label]) / gained if gained > 0 else 100.0
    return SimulatedValue(
        fmean(retained.values()),
        note=f"{format_by_network(retained)}; largest ratios {format_by_network(largest, '{:.1f}')}, capped from 12.5",
    )
