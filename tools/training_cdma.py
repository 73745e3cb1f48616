"""Ours for each number of the cDMA paper (Rhu et al., HPCA 2018)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from buddysim.compress.tensors import tensor_ratios
from buddysim.schemes import cdma_engine
from buddysim.schemes.cdma_study import NETWORKS, figure_11
from plots.runs import Runs
from tools.training_numbers import Ours, measures
from tools.training_vdnn import listed, loss, mean

if TYPE_CHECKING:
    from buddysim.dnn.activations import Activations

LINK = "pcie3"  # what copies reach (cDMA, Sec. III)
PEAK = "pcie3-peak"  # what the engine is made for (Sec. V)
STATED_DENSITY = 0.38  # 62 % zeros (Sec. IV-B)
CUDNN = {"titan-x": "cudnn5", "titan-xp": "cudnn5"}  # Sec. VI


# The networks.


@measures("cdma-batches")
def batches(runs: Runs) -> Ours:
    return Ours(
        tuple(float(batch) for _, batch in NETWORKS.values()), said=", ".join(f"`{n}`" for n, _ in NETWORKS.values())
    )


@measures("cdma-alexnet")
def first_conv_of_alexnet(runs: Runs) -> Ours:
    from buddysim.dnn import Network

    network = Network.load(NETWORKS["AlexNet"][0])
    first = next(layer for layer in network.layers if layer.kind == "conv")
    return Ours(tuple(float(extent) for extent in first.output_shape))


# The engine.


@measures("zvc-overhead", "zvc-most", "zvc-60", "zvc-60-mask", "zvc-62", "zvc-62-mask")
def zvc(runs: Runs, id: str) -> Ours:
    zeros = {"zvc-overhead": 0.0, "zvc-most": 1.0, "zvc-60": 0.6, "zvc-60-mask": 0.6}.get(id, 0.62)
    ratio = zvc_ratio(zeros)
    if id == "zvc-overhead":
        return Ours(100 * (1 / ratio.ratio - 1))
    return Ours(ratio.ratio if id.endswith("mask") or id == "zvc-most" else ratio.ratio_without_mask)


@cache
def zvc_ratio(zeros: float) -> Any:
    """ZVC of a million words of which exactly that share is zero."""
    words = np.ones((1, 1, 1000, 1000), dtype=np.float32)
    places = np.random.default_rng(0).permutation(words.size)[: round(zeros * words.size)]
    words.reshape(-1)[places] = 0
    return tensor_ratios(words, ("NCHW",), (4096,), ("zvc",))[0]


@measures("zvc-13.8", "zvc-13.8-mask")
def zeros_for_the_largest(runs: Runs, id: str) -> Ours:
    mask = 1 / 32 if id.endswith("mask") else 0.0
    return Ours(100 * (1 - (1 / 13.8 - mask)))


@measures(
    "engine-rate", "engine-compress", "engine-decompress", "engine-demand", "left-over", "cap", "cap-bw", "buffer",
    "area-units", "area-buffer", "area", "area-gen5",
)  # fmt: skip
def engine(runs: Runs, id: str) -> Ours:
    from buddysim.machine.training import TrainingMachine

    titan_x = TrainingMachine.load("titan-x")
    gen3, gen5 = (cdma_engine.engine(titan_x.links[name].offload_bytes_per_s) for name in (PEAK, "pcie5-peak"))
    left = cdma_engine.left_over_bytes_per_s(titan_x.dram_bytes_per_s, titan_x.fp32_flops)
    figures = {
        "engine-rate": cdma_engine.BYTES_PER_CYCLE,
        "engine-compress": cdma_engine.COMPRESS_CYCLES,
        "engine-decompress": cdma_engine.DECOMPRESS_CYCLES,
        "engine-demand": titan_x.links[PEAK].offload_bytes_per_s * 13.8 / 1e9,
        "left-over": left / 1e9,
        "cap": cdma_engine.PUBLISHED_CAP / 1e9,
        "cap-bw": cdma_engine.BANDWIDTH_AWARE_CAP / 1e9,
        "buffer": gen3.buffer_bytes / 1e3,
        "area-units": gen3.units_mm2,
        "area-buffer": gen3.buffer_mm2,
        "area": gen3.area_mm2,
        "area-gen5": gen5.area_mm2,
    }
    said = ""
    cause = ""
    if id == "area-gen5":
        said = f"buffer grown with the link, six compressors; {gen5.scaled_area_mm2:.2f} with as many as the link needs"
        twice = gen5.area_mm2 + gen3.units_mm2
        cause = (
            f"how the compressors grow isn't published: {gen5.area_mm2:.2f} mm2 if only the buffer grows fourfold, as "
            f"the text says; {gen5.scaled_area_mm2:.2f} if the compressors do too; {twice:.2f} with twice as many"
        )
    return Ours(float(figures[id]), said=said, cause=cause)


# Sparsity over training, of our own.


@cache
def observed() -> Activations:
    """The measurement that ships with the package."""
    from buddysim.dnn.activations import load

    return load()


def maps_of(kind: str, part: str = "features") -> list[int]:
    """Numbers of the maps that a kind of layer wrote."""
    return [n for n, info in enumerate(observed().maps) if info.kind == kind and info.part == part]


@measures("first-conv")
def first_conv(runs: Runs) -> Ours:
    densities = 100 * observed().densities[:, maps_of("relu")[0]]
    return Ours((float(densities.min()), float(densities.max())), said=about_the_training())


def about_the_training() -> str:
    made, last = observed().provenance, observed().points[-1]
    return f"{made.get('network', 'a network')} on {made.get('data', 'data')}, {last.iteration:,} iterations"


@measures("pool-denser")
def pool_denser(runs: Runs) -> Ours:
    densities = observed().densities
    pools = [n for n in maps_of("maxpool") if n and observed().maps[n - 1].kind == "relu"]
    denser = [float((densities[:, n] >= densities[:, n - 1]).mean()) for n in pools]
    share = mean(denser)
    return Ours(
        "denser" if share > 0.95 else "not always denser",
        said=f"{len(pools)} pooling layers, at {100 * share:.0f} % of the points",
    )


def network_density() -> Any:
    """Density of all ReLU maps of the features, weighted by size, by point."""
    maps = maps_of("relu")
    sizes = np.array([observed().maps[n].elements for n in maps], dtype=float)
    return observed().densities[:, maps] @ sizes / sizes.sum()


@measures("fall", "u-shape")
def over_training(runs: Runs, id: str) -> Ours:
    density = network_density()
    iterations = [point.iteration for point in observed().points]
    lowest = int(density.argmin())
    said = (
        f"{100 * density[0]:.1f} % at the start, {100 * density[lowest]:.1f} % at iteration {iterations[lowest]:,}, "
        f"{100 * density[-1]:.1f} % at {iterations[-1]:,}"
    )
    if id == "fall":
        return Ours("falls" if density[lowest] < density[0] else "does not fall", said=said)
    rises = lowest < len(density) - 1 and density[-1] > density[lowest]
    return Ours("rises slowly" if rises else "does not rise", said=said)


@measures("deeper-sparser")
def deeper_sparser(runs: Runs) -> Ours:
    means = [observed().mean_density(n) or 0.0 for n in maps_of("relu")]
    ranks = np.argsort(np.argsort(means))
    rank = float(np.corrcoef(np.arange(len(means)), ranks)[0, 1])  # Spearman's
    shown = ", ".join(f"{100 * density:.0f}" for density in means)
    return Ours("sparser" if rank < 0 else "denser", said=f"mean densities {shown} %; rank correlation {rank:.2f}")


@measures("fc-sparsest")
def fc_sparsest(runs: Runs) -> Ours:
    features = [observed().mean_density(n) or 0 for n in maps_of("relu")]
    classifier = [observed().mean_density(n) or 0 for n in maps_of("relu", "classifier")]
    return Ours(
        "sparsest" if max(classifier) < min(features) else "not sparsest",
        said=f"density {', '.join(f'{100 * d:.0f}' for d in classifier)} % against {100 * min(features):.0f} % of the "
        f"sparsest CONV",
    )


# Ratios, of the paper's networks with the densities of our training.


@cache
def ratios(masks: bool, window: int = 4096) -> Any:
    """Figure 11's data."""
    from buddysim.dnn.contents.measured import measured

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


# Time.


def performance(runs: Runs, machine: str, scheme: str, **options: Any) -> dict[str, float]:
    """Performance over the oracle's in per cent, of the feature layers, by the paper's name of the network."""
    options = {"link": LINK, "library": CUDNN[machine], **options}
    return {
        label: 100 - loss(runs.one(name, batch, scheme, machine, **options))
        for label, (name, batch) in NETWORKS.items()
    }


@measures("vdnn-loss", "vdnn-loss-most")
def vdnn_loss(runs: Runs, id: str) -> Ours:
    pick = max if id.endswith("most") else mean
    lost, said = {}, []
    for machine in ("titan-x", "titan-xp"):
        for link in (LINK, PEAK):
            found = {label: 100 - kept for label, kept in performance(runs, machine, "vdnn-all-p", link=link).items()}
            lost[machine, link] = found
            said.append(f"{machine}, {link}: {pick(found.values()):.0f}")
    ours = lost["titan-xp", LINK]
    return Ours(
        pick(ours.values()),
        said=f"Titan Xp, {LINK} ({listed(ours)}); {', '.join(said)}",
        cause=concat_cause(runs, "titan-xp"),
    )


def concat_cause(runs: Runs, machine: str) -> str:
    """What the inputs of concat layers have to do with it, in a sentence."""
    scheme, label = "vdnn-all-p", "SqueezeNet"
    name, batch = NETWORKS[label]
    result = runs.one(name, batch, scheme, machine, link=LINK, library=CUDNN[machine])
    of_concat = sum(row["offload_bytes"] for row in result["per_layer"] if row["kind"] == "concat")
    less = 100 - performance_without_concat(name, batch, machine, scheme)
    zv = performance_without_concat(name, batch, machine, "cdma-zv", density=STATED_DENSITY, masks=False)
    return (
        f"it is {label}: {of_concat / 1e9:.1f} of the {result['offload.bytes'] / 1e9:.1f} GB that it offloads are X of "
        f"concat layers. Where these stay (a framework whose layers write into the joined map has no such X), it loses "
        f"{less:.0f} % instead of {loss(result):.0f} on `{machine}`, "
        f"and cDMA gains {100 * (zv / (100 - less) - 1):.0f} %"
    )


def performance_without_concat(name: str, batch: int, machine_name: str, scheme: str, **options: Any) -> float:
    """Performance over the oracle's in per cent, where X of concat layers isn't offloaded."""
    from buddysim import schemes
    from buddysim.dnn import Network
    from buddysim.dnn.cost import CostModel
    from buddysim.machine.training import TrainingMachine
    from buddysim.schemes.simulate import carry_out, make_options

    network, machine = Network.load(name), TrainingMachine.load(machine_name)
    chosen = make_options(link=LINK, library=CUDNN[machine_name], **options)
    cost = CostModel.load(machine, chosen.library)
    plan = schemes.load(scheme).plan(network, batch, machine, cost, scheme, chosen)
    kept = frozenset(index for index in plan.offload if network.layers[index].kind != "concat")
    return 100 * carry_out(network, batch, machine, cost, replace(plan, offload=kept), chosen).features.time_vs_oracle


@measures("cudnn5-speed")
def cudnn5(runs: Runs) -> Ours:
    return Ours(None, said="cuDNN 1 has no calibration: its timings aren't among the published ones we have")


@measures("gain-titan-x", "gain-titan-x-most", "gain-titan-xp", "gain-titan-xp-most")
def gain(runs: Runs, id: str) -> Ours:
    machine = "titan-xp" if "xp" in id else "titan-x"
    pick = max if id.endswith("most") else mean
    stated = gains(runs, machine, "cdma-zv", density=STATED_DENSITY, masks=False)
    ours = gains(runs, machine, "cdma-zv")
    return Ours(
        pick(stated.values()),
        said=f"62 % zeros everywhere, masks not counted: {listed(stated)}; "
        f"with our measured maps {pick(ours.values()):.0f}",
        cause=concat_cause(runs, machine),
    )


def gains(runs: Runs, machine: str, scheme: str, **options: Any) -> dict[str, float]:
    """How much faster than vDNN, in per cent."""
    below, above = performance(runs, machine, "vdnn-all-p"), performance(runs, machine, scheme, **options)
    return {label: 100 * (above[label] / below[label] - 1) for label in NETWORKS}


@measures("bw-aware", "cap-benefit", "zlib-faster", "zlib-faster-most")
def against_zvc(runs: Runs, id: str) -> Ours:
    machine = "titan-x"
    zvc_ = performance(runs, machine, "cdma-zv")
    if id == "cap-benefit":
        return cap_benefit(runs, machine, zvc_)
    other = performance(runs, machine, "cdma-bw" if id == "bw-aware" else "cdma-zl")
    relative = {label: 100 * other[label] / zvc_[label] for label in NETWORKS}
    if id == "bw-aware":
        best = {
            label: 100 * other[label] / max(zvc_[label], performance(runs, machine, "cdma-zl")[label])
            for label in NETWORKS
        }
        return Ours(mean(best.values()), said=f"our measured maps: {listed(best)}")
    faster = {label: kept - 100 for label, kept in relative.items()}
    amount = max(faster.values()) if id.endswith("most") else mean(faster.values())
    return Ours(amount, said=f"our measured maps: {listed(faster, '{:.1f}')}")


def cap_benefit(runs: Runs, machine: str, zvc_: dict[str, float]) -> Ours:
    """The share of what compression gains that is left under the cap: copies of a ratio above 200 / 16 run into it."""
    largest = {label: of(label, "zvc").largest for label in NETWORKS}
    vdnn, kept = performance(runs, machine, "vdnn-all-p"), {}
    for label, (name, batch) in NETWORKS.items():
        uncapped = uncapped_performance(name, batch, machine)
        kept[label] = 100 * (zvc_[label] - vdnn[label]) / (uncapped - vdnn[label]) if uncapped > vdnn[label] else 100.0
    return Ours(
        mean(kept.values()), said=f"{listed(kept)}; largest ratios {listed(largest, '{:.1f}')}, capped from 12.5"
    )


def uncapped_performance(name: str, batch: int, machine_name: str) -> float:
    """Performance of cdma-zv over the oracle's in per cent, with as much read bandwidth as it asks for."""
    from buddysim.dnn import Network
    from buddysim.dnn.cost import CostModel
    from buddysim.machine.training import TrainingMachine
    from buddysim.schemes import cdma
    from buddysim.schemes.simulate import carry_out, make_options

    network, machine = Network.load(name), TrainingMachine.load(machine_name)
    options = make_options(link=LINK, library=CUDNN[machine_name])
    cost = CostModel.load(machine, options.library)
    plan = cdma.plan(network, batch, machine, cost, "cdma-zv", options)
    assert isinstance(plan.compression, cdma.CompressedCopies)
    free = replace(plan, compression=replace(plan.compression, cap_bytes_per_s=10**15))
    return 100 * carry_out(network, batch, machine, cost, free, options).features.time_vs_oracle
