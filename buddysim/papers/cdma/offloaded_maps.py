"""Compression ratios of the feature maps that a network offloads, by algorithm and layout (cDMA, Figs. 11 and 12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from buddysim.compress.layouts import LAYOUTS
from buddysim.machine.training import TrainingMachine
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.training.contents import ActivationSource, Codec, mean_compressed_fraction
from buddysim.training.cost import CostModel
from buddysim.training.iteration.build import build
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Network
from buddysim.training.schemes import vdnn

#: The compressors that Fig. 11 compares.
ALGORITHMS = ("zvc", "rle", "zlib")


@dataclass(frozen=True)
class OffloadRatios:
    """Compression ratios of a codec for the feature maps that a network offloads.

    Attributes
    ----------
    network, batch, codec : what was compressed, and by what
    average : raw over compressed bytes of all feature maps together
    largest, largest_map : largest ratio of one feature map, and the layer that wrote it
    raw_bytes : bytes of all feature maps
    density : density of all feature maps together; None if one is unknown
    source : source of the contents
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
        """Bytes moved over the bytes that vDNN moves (Fig. 12)."""
        return 1 / self.average


def offloaded_maps(network: Network, batch: int, machine: TrainingMachine | str = "titan-x") -> dict[int, int]:
    """Return the bytes of every feature map that vDNN's `all` policy offloads, by the layer that wrote it last.

    The offloaded feature maps do not depend on the machine's speed.
    """
    machine = TrainingMachine.load(machine)
    cost = CostModel.load(machine)
    plan = vdnn.plan(network, batch, machine, cost, "vdnn-all-p", TrainingOptions())
    program = build(network, batch, cost, plan, machine.link_rate)
    offloads = [task for task in program.tasks if task.stream == "offload"]
    return {network.last_writer(program.tensors[task.tensor].layer): task.byte_count for task in offloads}


def ratios(network: Network, batch: int, source: ActivationSource, codecs: Iterable[Codec]) -> list[OffloadRatios]:
    """Return average and largest ratio of the feature maps that `network` offloads, by codec."""
    maps = offloaded_maps(network, batch)
    codec_ratios = []
    for codec in codecs:
        contents = source.contents(network, batch, codec)
        densities = [(contents[index].density, size) for index, size in maps.items()]
        total = sum(maps.values())
        density: float | None = 0.0
        for value, size in densities:
            density = None if density is None or value is None else density + value * size / total
        best = max(maps, key=lambda index: (contents[index].ratio, -index))
        codec_ratios.append(
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
    return codec_ratios


def ratios_by_network(
    source: ActivationSource, networks: Mapping[str, tuple[str, int]] = NETWORKS, window: int = 4096, masks: bool = True
) -> dict[str, list[OffloadRatios]]:
    """Ratios of every algorithm in every layout, by the paper's name of the network (Fig. 11; NCHW: Fig. 12)."""
    codecs = [
        Codec(algorithm, layout, window, masks or algorithm != "zvc") for algorithm in ALGORITHMS for layout in LAYOUTS
    ]
    return {label: ratios(load_network(name), batch, source, codecs) for label, (name, batch) in networks.items()}
