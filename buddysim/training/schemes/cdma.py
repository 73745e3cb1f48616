"""cDMA (Rhu et al., HPCA 2018): vDNN's `all` policy with the fastest CONV algorithms, its copies compressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buddysim.compress.compressors import find
from buddysim.training.contents import Codec, MapContents
from buddysim.training.contents.activation_options import OPTIONS as CONTENTS_OPTIONS
from buddysim.training.contents.activation_options import contents_assumption, make_codec, make_source
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.program import Direction
from buddysim.training.iteration.stash import Offload, Stash
from buddysim.training.networks.graph import Network
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, cdma_engine, vdnn
from buddysim.training.schemes._links import link_rate

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.cost import CostModel

SUMMARY = {
    "cdma-zv": "vdnn-all-p with copies compressed by zero-value compression",
    "cdma-rl": "vdnn-all-p with copies compressed by run-length encoding",
    "cdma-zl": "vdnn-all-p with copies compressed by zlib",
    "cdma-bw": "cdma-zv with at most 48 GB/s of memory bandwidth for its copies",
}
FAMILY = "cdma"
ORDER = 200
FACTS = SchemeFacts(
    source="Rhu et al., cDMA, HPCA 2018",
    moves="as vdnn-all-p, compressed by the DMA engine",
    costs="copies of the compressed bytes; bandwidth of device memory",
    applies="ReLU: others have no zeros",
    check="`docs/validation/training-papers.md`; `tests/training/schemes/test_cdma_laws.py`",
)
ACCURACY = UNCHANGED
#: Compression changes the copies' times, and no memory.
FITS_AS = dict.fromkeys(SUMMARY, "vdnn-all-p")

OPTIONS = CONTENTS_OPTIONS

_COMPRESSORS = {"cdma-zv": "zvc", "cdma-rl": "rle", "cdma-zl": "zlib", "cdma-bw": "zvc"}


@dataclass(frozen=True)
class CompressedCopies:
    """The copies of an iteration.

    Attributes
    ----------
    contents : of every layer's output
    link : its rates and latency
    cap_bytes_per_s : of device memory, for either direction
    codec : how feature maps are compressed
    source : where the contents come from
    made_by : the compressors, with versions, that the compressed sizes come from
    """

    contents: Mapping[int, MapContents]
    link: HostLinkConfig
    cap_bytes_per_s: int
    codec: Codec
    source: str
    made_by: str

    def moved_bytes(self, byte_count: int, layer: int) -> int:
        """Bytes of a compressed feature map, rounded."""
        return round(byte_count * self.contents[layer].compressed_fraction)

    def copy_ps(self, byte_count: int, layer: int, direction: Direction) -> int:
        """Picoseconds of a copy, the link's latency with it."""
        rate = self.link.offload_bytes_per_s if direction == "offload" else self.link.prefetch_bytes_per_s
        moved = self.moved_bytes(byte_count, layer)
        return self.link.latency_ps + cdma_engine.copy_ps(byte_count, moved, rate, self.cap_bytes_per_s)

    def compressed_stashes(self, stashes: Mapping[int, Stash], network: Network, batch: int) -> dict[int, Stash]:
        """The stashes with their copies compressed; host memory is pinned for the uncompressed feature maps."""
        compressed = {}
        for owner, stash in stashes.items():
            size, writer = network.output_bytes(owner, batch), network.last_writer(owner)
            times = self.copy_ps(size, writer, "offload"), self.copy_ps(size, writer, "prefetch")
            compressed[owner] = replace(stash, offload=Offload(self.moved_bytes(size, writer), *times))
        return compressed


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """vDNN's plan, with compression on its copies."""
    copies = scheme_copies(network, batch, machine, options, name)
    return compressed_plan(network, batch, machine, cost, name, options, copies)


def scheme_copies(
    network: Network, batch: int, machine: TrainingMachine, options: TrainingOptions, name: str
) -> CompressedCopies:
    """The copies of one of the schemes of this file."""
    return compressed_copies(network, batch, machine, options, _COMPRESSORS[name], name == "cdma-bw")


def compressed_plan(
    network: Network,
    batch: int,
    machine: TrainingMachine,
    cost: CostModel,
    name: str,
    options: TrainingOptions,
    copies: CompressedCopies,
) -> Plan:
    """The plan of ``vdnn-all-p`` with these copies."""
    below = vdnn.plan(network, batch, machine, cost, "vdnn-all-p", options)
    by = f", by {copies.made_by}" if hasattr(find(copies.codec.algorithm), "provenance") else ""
    notes = (
        *below.notes,
        f"compression: {copies.codec}{by}; read bandwidth at most {copies.cap_bytes_per_s / 1e9:g} GB/s",
    )
    assumptions = {"activations": contents_assumption(copies.source)}
    stash = copies.compressed_stashes(below.stash, network, batch)
    moved = [copies.contents[network.last_writer(owner)] for owner in below.stash]
    nothing = below.nothing_to_do
    if moved and all(one.is_dense for one in moved):
        nothing = "nothing to compress: feature maps have no zeros; as vdnn-all-p"
    return replace(below, scheme=name, stash=stash, notes=notes, assumptions=assumptions, nothing_to_do=nothing)


def compressed_copies(
    network: Network,
    batch: int,
    machine: TrainingMachine,
    options: TrainingOptions,
    compressor: str,
    bandwidth_aware: bool = False,
) -> CompressedCopies:
    """A network's copies with this compressor in the engine."""
    codec = make_codec(compressor, options.extra)
    source = make_source(network, options.extra)
    link = link_rate(machine, options.link)
    left_over = cdma_engine.left_over_bytes_per_s(machine.dram_bytes_per_s, machine.training.fp32)
    rate = max(link.offload_bytes_per_s, link.prefetch_bytes_per_s)
    cap = cdma_engine.read_cap(rate, left_over, bandwidth_aware=bandwidth_aware)
    contents = source.contents(network, batch, codec)
    return CompressedCopies(contents, link, cap, codec, source.description, source.made_by(codec))
