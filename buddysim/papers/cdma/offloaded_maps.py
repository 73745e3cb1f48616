"""Compression ratios of the maps that a network offloads, by algorithm and layout (cDMA, Figs. 11 and 12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from buddysim.compress.tensors import LAYOUTS
from buddysim.machine.training import TrainingMachine
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.training.contents import ActivationSource, Codec, mean_compressed_fraction
from buddysim.training.cost import CostModel
from buddysim.training.iteration.build import build
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.networks.graph import Network
from buddysim.training.schemes import vdnn

#: The compressors that Fig. 11 compares.
ALGORITHMS = ("zvc", "rle", "zlib")


@dataclass(frozen=True)
class OffloadRatios:
    """How well a codec compresses the maps that a network offloads.

    Attributes
    ----------
    network, batch, codec : what was compressed, and by what
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

    Which maps are offloaded doesn't depend on the machine's speed.
    """
    machine = TrainingMachine.load(machine)
    cost = CostModel.load(machine)
    plan = vdnn.plan(network, batch, machine, cost, "vdnn-all-p", TrainingOptions())
    program = build(network, batch, cost, plan, machine.link_rate)
    offloads = [task for task in program.tasks if task.stream == "offload"]
    return {network.last_writer(program.tensors[task.tensor].layer): task.byte_count for task in offloads}


def ratios(network: Network, batch: int, source: ActivationSource, codecs: Iterable[Codec]) -> list[OffloadRatios]:
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
            OffloadRatios(
                network=network.name,
                batch=batch,
                codec=codec,
                average=1 / mean_compressed_fraction(contents, maps),
                largest=contents[best].ratio,
                largest_map=network.layers[best].name,
                raw_bytes=total,
                density=density,
                source=source.description,
            )
        )
    return found


def ratios_by_network(
    source: ActivationSource, networks: Mapping[str, tuple[str, int]] = NETWORKS, window: int = 4096, masks: bool = True
) -> dict[str, list[OffloadRatios]]:
    """Ratios of every algorithm in every layout, by the paper's name of the network (Fig. 11; NCHW: Fig. 12)."""
    codecs = [
        Codec(algorithm, layout, window, masks or algorithm != "zvc") for algorithm in ALGORITHMS for layout in LAYOUTS
    ]
    return {label: ratios(Network.load(name), batch, source, codecs) for label, (name, batch) in networks.items()}
