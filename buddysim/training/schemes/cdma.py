"""cDMA (Rhu et al., HPCA 2018): vDNN's `all` policy with the fastest CONV algorithms, its copies compressed on the way.

Options of its own (`Options.extra`), the same for every name:

| option | default | |
|---|---|---|
| ``activations`` | the shipped measurement | file of observed feature maps |
| ``epoch`` | mean of training | which of its samples: the one nearest to that epoch |
| ``repeats`` | True | False: values but zero as if none came twice (`buddysim.training.contents.measured`) |
| ``densities`` | | table of the user's own, TOML or CSV (`buddysim.training.contents.table`) |
| ``density``, ``cluster``, ``seed`` | | generated activations (`buddysim.training.contents.generated`) |
| ``layout``, ``window`` | NCHW, 4096 | of the compressed tensors; bytes |
| ``masks`` | True | False doesn't count ZVC's masks, as the paper's ratios |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.compress.tensors import LAYOUTS
from buddysim.compress.windows import check_window
from buddysim.training.contents import Codec, GeneratedContents, MapContents, Source, TableContents
from buddysim.training.iteration.plan import Direction, Options, Plan
from buddysim.training.networks.graph import Network
from buddysim.training.schemes import cdma_engine, load

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.machine.training_table import LinkRate
    from buddysim.training.cost import CostModel

SUMMARY = {
    "cdma-zv": "vdnn-all-p, copies compressed by zero-value compression",
    "cdma-rl": "vdnn-all-p, copies compressed by run-length encoding",
    "cdma-zl": "vdnn-all-p, copies compressed by zlib",
    "cdma-bw": "cdma-zv that takes no more than 48 GB/s of memory bandwidth",
}
NAMES = tuple(SUMMARY)

_ALGORITHM = {"cdma-zv": "zvc", "cdma-rl": "rle", "cdma-zl": "zlib", "cdma-bw": "zvc"}
OPTIONS: dict[str, type | tuple[type, ...]] = {
    "activations": str,
    "epoch": (int, float),
    "repeats": bool,
    "densities": str,
    "density": (int, float),
    "cluster": int,
    "seed": int,
    "layout": str,
    "window": int,
    "masks": bool,
}


#: Options that make sense with one source only.
_BELONGS = {"cluster": "density", "seed": "density", "epoch": "activations", "repeats": "activations"}


@dataclass(frozen=True)
class CompressedCopies:
    """The copies of an iteration (`buddysim.training.iteration.plan.Compression`).

    Attributes
    ----------
    contents : of every layer's output
    link : its rates and latency
    cap_bytes_per_s : of device memory, for either direction
    codec : how maps are compressed
    source : where the contents come from
    compressors : what made the sizes of codes
    """

    contents: Mapping[int, MapContents]
    link: LinkRate
    cap_bytes_per_s: int
    codec: Codec
    source: str
    compressors: str

    def moved_bytes(self, byte_count: int, layer: int) -> int:
        """Bytes of a map's code, to the nearest."""
        return round(byte_count * self.contents[layer].share)

    def copy_ps(self, byte_count: int, layer: int, direction: Direction) -> int:
        """Picoseconds of a copy, the link's latency with it."""
        rate = self.link.offload_bytes_per_s if direction == "offload" else self.link.prefetch_bytes_per_s
        moved = self.moved_bytes(byte_count, layer)
        return self.link.latency_ps + cdma_engine.copy_ps(byte_count, moved, rate, self.cap_bytes_per_s)


def plan(network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: Options) -> Plan:
    """vDNN's plan, with compression on its copies."""
    below: Plan = load("vdnn-all-p").plan(network, batch, machine, cost, "vdnn-all-p", options)
    copies = compressed_copies(network, batch, machine, name, options)
    by = f", by {copies.compressors}" if copies.codec.algorithm == "zlib" else ""
    notes = (
        *below.notes,
        f"compression: {copies.codec}{by}; read bandwidth at most {copies.cap_bytes_per_s / 1e9:g} GB/s",
        f"activations: {copies.source}",
    )
    return replace(below, scheme=name, compression=copies, notes=notes)


def compressed_copies(
    network: Network, batch: int, machine: TrainingMachine, name: str, options: Options
) -> CompressedCopies:
    """What the engine does with a network's maps under one of the scheme's names."""
    from buddysim.training.schemes._links import link_rate

    extra = checked_options(options.extra)
    codec = codec_of(name, extra)
    source = source_of(extra)
    link = link_rate(machine, options.link)
    left_over = cdma_engine.left_over_bytes_per_s(machine.dram_bytes_per_s, machine.fp32_flops)
    rate = max(link.offload_bytes_per_s, link.prefetch_bytes_per_s)
    cap = cdma_engine.read_cap(rate, left_over, bandwidth_aware=name == "cdma-bw")
    contents = source.contents(network, batch, codec)
    return CompressedCopies(contents, link, cap, codec, source.description, source.compressors)


def codec_of(name: str, extra: Mapping[str, Any]) -> Codec:
    """Algorithm, layout and window of one of the scheme's names."""
    layout, window = extra.get("layout", "NCHW"), extra.get("window", 4096)
    if layout not in LAYOUTS:
        raise BuddysimError(f"layout {layout!r}: expected one of {', '.join(LAYOUTS)}")
    check_window(name, window, 4)
    algorithm = _ALGORITHM[name]
    return Codec(algorithm, layout, window, masks=extra.get("masks", True) or algorithm != "zvc")


def source_of(extra: Mapping[str, Any]) -> Source:
    """Where the contents of maps come from: exactly one of a measurement, a table, generated activations."""
    given = [name for name in ("activations", "densities", "density") if extra.get(name) is not None]
    if len(given) > 1:
        raise BuddysimError(f"{' and '.join(given)}: expected one source of activations")
    source = given[0] if given else "activations"
    for name, owner in _BELONGS.items():
        if extra.get(name) is not None and owner != source:
            raise BuddysimError(f"{name}: goes with {owner}, not with {source}")
    if "densities" in given:
        return TableContents.read(extra["densities"])
    if "density" in given:
        return GeneratedContents(extra["density"], extra.get("cluster", 1), extra.get("seed", 0))
    from buddysim.training.contents.measured import measured

    return measured(extra.get("activations"), extra.get("epoch"), extra.get("repeats", True))


def checked_options(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are cDMA's; those of other schemes are theirs to check."""
    found = {name: value for name, value in extra.items() if name in OPTIONS and value is not None}
    for name, value in found.items():
        expected = OPTIONS[name]
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            kinds = expected if isinstance(expected, tuple) else (expected,)
            raise BuddysimError(f"option {name}: {value!r}: expected {' or '.join(kind.__name__ for kind in kinds)}")
    return found
