"""The data of the cDMA paper's figures 11, 12 and 13: ratios by algorithm and layout, traffic, and performance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from buddysim.compress.tensors import LAYOUTS
from buddysim.training.contents import Codec, Source, average_share
from buddysim.training.iteration.plan import Direction, Options
from buddysim.training.networks.graph import Network
from buddysim.training.schemes import vdnn

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine

#: Network of the zoo and batch, by the paper's name (Table II): Caffe's variants where the zoo has several.
NETWORKS: dict[str, tuple[str, int]] = {
    "AlexNet": ("alexnet-caffe", 256),
    "OverFeat": ("overfeat", 256),
    "NiN": ("nin", 128),
    "VGG": ("vgg16", 128),
    "SqueezeNet": ("squeezenet", 512),
    "GoogLeNet": ("googlenet-caffe", 256),
}
#: The compressors that Fig. 11 compares.
ALGORITHMS = ("zvc", "rle", "zlib")
#: What Fig. 13 compares.
SCHEMES = ("vdnn-all-p", "cdma-rl", "cdma-zv", "cdma-zl", "cdma-bw", "oracle")


@dataclass(frozen=True)
class Ratios:
    """What a codec makes of the maps that a network offloads.

    Attributes
    ----------
    network, batch, codec : of which
    average : bytes before over bytes after of all maps together
    largest, largest_map : of a single map, and the layer that wrote it
    raw_bytes : of all maps
    density : of all maps together, None where a map's isn't known
    source : where the contents come from
    """

    network: str
    batch: int
    codec: Codec
    average: float
    largest: float
    largest_map: str
    raw_bytes: int
    density: float | None
    source: str

    @property
    def traffic(self) -> float:
        """Bytes moved over those that vDNN moves (Fig. 12)."""
        return 1 / self.average


def offloaded_maps(network: Network, batch: int, machine: TrainingMachine | str = "titan-x") -> dict[int, int]:
    """Bytes of every map that vDNN's `all` policy offloads, by the layer that wrote it last.

    The machine's speed plays no part in which maps go.
    """
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.iteration.build import build

    machine = TrainingMachine.load(machine)
    cost = CostModel.load(machine)
    seen = _Seen({})
    plan = vdnn.plan(network, batch, machine, cost, "vdnn-all-p", Options())
    build(network, batch, cost, replace(plan, compression=seen), machine.link_rate)
    return seen.maps


@dataclass(frozen=True)
class _Seen:
    """Compresses nothing, and remembers what it was asked of."""

    maps: dict[int, int]

    def copy_ps(self, byte_count: int, layer: int, direction: Direction) -> int:
        if direction == "offload":
            self.maps[layer] = byte_count
        return 0

    def moved_bytes(self, byte_count: int, layer: int) -> int:
        return byte_count


def ratios(network: Network, batch: int, source: Source, codecs: Iterable[Codec]) -> list[Ratios]:
    """Average and largest ratio of the maps that `network` offloads, by codec."""
    maps = offloaded_maps(network, batch)
    found = []
    for codec in codecs:
        contents = source.contents(network, batch, codec)
        densities = [(contents[index].density, size) for index, size in maps.items()]
        total = sum(maps.values())
        density: float | None = 0.0
        for value, size in densities:
            density = None if density is None or value is None else density + value * size / total
        best = max(maps, key=lambda index: (contents[index].ratio, -index))
        found.append(
            Ratios(
                network=network.name,
                batch=batch,
                codec=codec,
                average=1 / average_share(contents, maps),
                largest=contents[best].ratio,
                largest_map=network.layers[best].name,
                raw_bytes=total,
                density=density,
                source=source.description,
            )
        )
    return found


def figure_11(
    source: Source, networks: Mapping[str, tuple[str, int]] = NETWORKS, window: int = 4096, masks: bool = True
) -> dict[str, list[Ratios]]:
    """Ratios of every algorithm in every layout, by the paper's name of the network; NCHW's are Fig. 12's."""
    codecs = [
        Codec(algorithm, layout, window, masks or algorithm != "zvc") for algorithm in ALGORITHMS for layout in LAYOUTS
    ]
    return {label: ratios(Network.load(name), batch, source, codecs) for label, (name, batch) in networks.items()}


def figure_13(
    machine: str,
    networks: Mapping[str, tuple[str, int]] = NETWORKS,
    schemes: Iterable[str] = SCHEMES,
    **options: Any,
) -> dict[str, dict[str, float]]:
    """Performance of every scheme over the oracle's, feature layers alone, by network and scheme.

    Parameters
    ----------
    machine : ``"titan-x"`` or ``"titan-xp"`` in the paper
    networks : network and batch by label
    schemes : names
    options : as for `buddysim.training.driver.simulate_outcome`: link, density, activations ...; the link is PCIe
        gen3's peak of 16 GB/s unless it is given, which the paper evaluates with (Sec. VI)
    """
    from buddysim.training.driver import simulate_outcome

    options = {"link": "pcie3-peak", **options}
    found: dict[str, dict[str, float]] = {}
    for label, (name, batch) in networks.items():
        network = Network.load(name)
        found[label] = {
            scheme: simulate_outcome(network, batch, machine, scheme, **options).features.time_vs_oracle
            for scheme in schemes
        }
    return found


def gains(performance: Mapping[str, Mapping[str, float]], scheme: str = "cdma-zv") -> dict[str, float]:
    """How much faster than vDNN, by network: 0.32 on average in the paper's text, 0.53 on the Titan Xp."""
    return {label: row[scheme] / row["vdnn-all-p"] - 1 for label, row in performance.items()}
