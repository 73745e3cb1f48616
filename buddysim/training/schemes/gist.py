"""Gist (Jain et al., ISCA 2018): feature maps are encoded on the GPU between their forward and their backward use.

Every scheme of this file starts from CNTK's baseline: no layer in place, CONV layers without workspace, structures
with disjoint lifetimes share memory. Encoded sizes are exact, given the contents of feature maps; a feature map whose
encoding isn't smaller stays raw. The time of a kernel is that of its bytes at the bandwidth of device memory: the
speeds of the paper's kernels are not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.option import Option, values
from buddysim.gist.csr_rows import rows_bytes
from buddysim.gist.formats import FORMATS, DprFormat
from buddysim.gist.windows import mask_bytes
from buddysim.training.contents import Codec, MapContents
from buddysim.training.contents.activation_options import OPTIONS as CONTENTS_OPTIONS
from buddysim.training.contents.activation_options import SOURCES, contents_assumption, make_source
from buddysim.training.iteration.allocators import Allocator, LiveSetCounter, StaticGroups
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.program import SECOND
from buddysim.training.iteration.stash import Encoding, Stash
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _algorithms
from buddysim.training.schemes._gist_accuracy import about, difference_text
from buddysim.training.schemes._gist_maps import categories, maker, pooling_index_bytes, readers, relus, views

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel


@dataclass(frozen=True)
class Encodings:
    """Encodings of a scheme.

    Attributes
    ----------
    binarize, ssdc : whether ReLU-Pool and ReLU/Pool-CONV feature maps are encoded
    inplace : whether ReLU runs in place
    format : of all that is kept of other feature maps, and of SSDC's values; None: single precision
    """

    binarize: bool = False
    ssdc: bool = False
    inplace: bool = False
    format: DprFormat | None = None


_LOSSLESS = Encodings(binarize=True, ssdc=True, inplace=True)
ENCODINGS: dict[str, Encodings] = {
    "gist-base": Encodings(),
    "gist-binarize": Encodings(binarize=True),
    "gist-ssdc": Encodings(ssdc=True),
    "gist-inplace": Encodings(inplace=True),
    "gist-ssdc-binarize": Encodings(binarize=True, ssdc=True),
    **{f"gist-dpr-{name}": Encodings(format=one) for name, one in FORMATS.items()},
    "gist-lossless": _LOSSLESS,
    **{f"gist-{name}": replace(_LOSSLESS, format=one) for name, one in FORMATS.items()},
}
SUMMARY = {
    "gist-base": "CNTK's baseline: no encoding, nothing in place, memory shared by tensors that are not live together",
    "gist-binarize": "gist-base with Binarize: ReLU-Pool feature maps stored as one bit per element",
    "gist-ssdc": "gist-base with SSDC: ReLU/Pool-CONV feature maps stored as sparse rows",
    "gist-inplace": "gist-base with ReLU in place",
    "gist-ssdc-binarize": "gist-base with SSDC and Binarize",
    **{
        f"gist-dpr-{name}": f"gist-base with all feature maps stored in {name.upper()} until their backward use"
        for name in FORMATS
    },
    "gist-lossless": "Gist's lossless encodings: Binarize, SSDC, ReLU in place",
    **{f"gist-{name}": f"gist-lossless with all other values stored in {name.upper()}" for name in FORMATS},
}
FAMILY = "gist"
ORDER = 700
FACTS = SchemeFacts(
    source="Jain et al., Gist, ISCA 2018",
    moves="nothing: bits for ReLU before pooling, sparse rows for ReLU before CONV, FP16, FP10, FP8 for the rest",
    costs="encoding and decoding",
    applies="Binarize: ReLU before max pooling; SSDC: before CONV; formats: all networks",
    check="`docs/validation/training-papers.md`; `tests/training/schemes/test_gist.py`",
)


def ACCURACY(name: str) -> str:
    """Lossless encodings change nothing; formats: as measured on a small network."""
    one = ENCODINGS[name].format
    return UNCHANGED if one is None else f"{difference_text(f'delayed-{one.name}')}, small network"


def MODEL_ACCURACY(name: str) -> str:
    """The same, as measured on a small transformer."""
    one = ENCODINGS[name].format
    return UNCHANGED if one is None else f"{difference_text(f'delayed-{one.name}', 'transformer')}, small transformer"


ALLOCATORS: dict[str, Allocator] = {
    "static": StaticGroups(),
    "dynamic": LiveSetCounter(),
    "investigation": StaticGroups(stashed_in_groups=False),
}
_GROUP = "Gist, for schemes gist-*"
OPTIONS = {
    "gist_allocator": Option(
        str,
        "allocator of Gist's schemes: static, CNTK's groups; dynamic, bytes that are live at once; investigation, "
        "groups in which stashed feature maps share no memory",
        "NAME", "static", _GROUP,
    ),
    "decoded_copies": Option(
        bool, "decode feature maps before backward steps read them (without decoded copies, backward steps read the "
        "encoded feature maps: 'optimized software')", default=True, group=_GROUP,
    ),
    **{name: CONTENTS_OPTIONS[name] for name in (*SOURCES, "epoch", "repeated_values", "synthetic_cluster", "seed")},
}  # fmt: skip

TIMES = "Encoding and decoding take the time of their bytes at the peak bandwidth of the device memory: optimistic."


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """One of the schemes, with the contents of feature maps that the options name."""
    source = make_source(network, options.extra) if ENCODINGS[name].ssdc else None
    contents = source.contents(network, batch, Codec()) if source else {}
    encoded = encoded_plan(network, batch, machine, cost, name, options, contents)
    if ENCODINGS[name].format is not None:
        trained = about("transformer" if network.recorded else "cnn")
        encoded = replace(encoded, assumptions={**encoded.assumptions, "accuracy": trained})
    if source is None:
        return encoded
    return replace(encoded, assumptions={**encoded.assumptions, "activations": contents_assumption(source.description)})


def encoded_plan(
    network: Network,
    batch: int,
    machine: TrainingMachine,
    cost: CostModel,
    name: str,
    options: TrainingOptions,
    contents: Mapping[int, MapContents],
) -> Plan:
    """The plan of one of the schemes.

    Parameters
    ----------
    contents : of every layer's output; only densities of ReLU and pooled feature maps count, where SSDC is used
    """
    selected = values(OPTIONS, options.extra)
    if selected["gist_allocator"] not in ALLOCATORS:
        name = selected["gist_allocator"]
        raise BuddysimError(
            f"gist_allocator {shortened(name)}: expected one of {', '.join(ALLOCATORS)}{hint(name, ALLOCATORS)}"
        )
    encodings = ENCODINGS[name]
    in_place = views(network) | (relus(network) if encodings.inplace else frozenset())
    making = _EncodingBuilder(
        network.in_place_only(in_place), batch, machine, cost, encodings, contents, selected["decoded_copies"]
    )
    allocator = ALLOCATORS[selected["gist_allocator"]]
    algorithms = _algorithms.memory_optimal(network, batch, cost)
    base = Plan(
        "gist-base",
        algorithms,
        in_place=views(network),
        allocator=StaticGroups() if allocator == LiveSetCounter() else allocator,
    )
    stashes = making.stashes()
    return replace(
        base,
        scheme=name,
        stash=stashes,
        nothing_to_do="" if stashes or in_place != views(network) else _nothing_to_encode(encodings),
        allocator=allocator,
        in_place=in_place,
        backward_reads=making.backward_reads(),
        saved_bytes=making.saved_bytes(),
        step_ps=making.step_ps(),
        footprint_baseline=base,
        assumptions={"times of encodings": TIMES} if name != "gist-base" else {},
    )


def _nothing_to_encode(encodings: Encodings) -> str:
    """Why a scheme changes nothing of a network; "" for the baseline, which never does."""
    missing = []
    if encodings.binarize:
        missing.append("ReLU before max pooling")
    if encodings.ssdc:
        missing.append("ReLU or pooling before CONV")
    if encodings.inplace and not missing:
        return "nothing to run in place: no ReLU"
    if encodings.format is not None:
        return f"nothing to encode: no feature map is wider than {encodings.format.name}"
    return f"nothing to encode: no {', no '.join(missing)}" if missing else ""


@dataclass(frozen=True)
class _EncodingBuilder:
    """Encodings of one network's feature maps."""

    network: Network
    batch: int
    machine: TrainingMachine
    cost: CostModel
    encodings: Encodings
    contents: Mapping[int, MapContents]
    decoded: bool

    def stashes(self) -> dict[int, Stash]:
        """The feature maps that are encoded, by owner."""
        by_owner = {}
        for owner, category in categories(self.network).items():
            stash = self._binarized(owner) if self._binarizes(category) else self._coded(owner, category)
            if stash is not None:
                by_owner[owner] = stash
        return by_owner

    def backward_reads(self) -> dict[int, frozenset[str]]:
        """Max pools behind a binarized feature map read pooling indices and dY alone."""
        return {pool.index: frozenset({"mask", "dy"}) for pool in self._pools()}

    def saved_bytes(self) -> dict[int, int]:
        """Return the bytes of these pooling indices."""
        return {pool.index: pooling_index_bytes(pool, self.batch) for pool in self._pools()}

    def step_ps(self) -> dict[tuple[int, str], int]:
        """Steps that move other bytes than without encodings: max pools, and ReLUs that read bits."""
        times = {}
        for owner, category in categories(self.network).items():
            if not self._binarizes(category):
                continue
            relu = maker(self.network, owner)
            times[relu.index, "backward"] = self._scaled(relu, "backward", self._mask(owner) - self._map_bytes(owner))
        for pool in self._pools():
            index_bytes, y = pooling_index_bytes(pool, self.batch), self._map_bytes(pool.index)
            x = self._map_bytes(pool.inputs[0])
            times[pool.index, "forward"] = self._scaled(pool, "forward", index_bytes)
            times[pool.index, "backward"] = self._scaled(pool, "backward", index_bytes - x - y)
        return times

    def _binarizes(self, category: str) -> bool:
        return self.encodings.binarize and category == "relu-pool"

    def _pools(self) -> list[Layer]:
        owners = [owner for owner, category in categories(self.network).items() if self._binarizes(category)]
        return [pool for owner in owners for pool in readers(self.network, owner)]

    def _map_bytes(self, layer: int) -> int:
        return self.network.output_bytes(layer, self.batch)

    def _width(self, owner: int) -> int:
        return self.network.layers[owner].element_bytes or self.network.element_bytes

    def _elements(self, owner: int) -> int:
        return self._map_bytes(owner) // self._width(owner)

    def _mask(self, owner: int) -> int:
        return mask_bytes(self._elements(owner))

    def _binarized(self, owner: int) -> Stash:
        """Bits, written by ReLU's own forward kernel and read by its backward kernel."""
        size = self._mask(owner)
        return Stash(Encoding(size, self._moving_ps(size), 0), decode_before_use=False)

    def _coded(self, owner: int, category: str) -> Stash | None:
        """The smallest encoding that applies, if it is smaller than the feature map."""
        raw, count, width = self._map_bytes(owner), self._elements(owner), self._width(owner)
        candidates = []
        if self.encodings.ssdc and category == "relu-conv":
            n_nonzero = self._n_nonzero(owner)
            size = rows_bytes(count, n_nonzero, self._value_bytes(n_nonzero, width))
            # The kernel reads the feature map twice: it counts the nonzero values first.
            candidates.append(Encoding(size, self._moving_ps(2 * raw + size), self._moving_ps(size + raw)))
        if self.encodings.format is not None:
            size = self._value_bytes(count, width)
            candidates.append(Encoding(size, self._moving_ps(raw + size), self._moving_ps(size + raw)))
        best = min(candidates, key=lambda encoding: encoding.byte_count, default=None)
        return None if best is None or best.byte_count >= raw else Stash(best, self.decoded)

    def _value_bytes(self, count: int, width: int) -> int:
        raw, one = count * width, self.encodings.format
        return raw if one is None else min(raw, one.payload_bytes(count))

    def _n_nonzero(self, owner: int) -> int:
        """Nonzero elements of a feature map; if only a ratio is known, as many as give that ratio."""
        count, width = self._elements(owner), self._width(owner)
        contents = self.contents[maker(self.network, owner).index]
        if contents.density is not None:
            return round(contents.density * count)
        rows = rows_bytes(count, 0, 0)
        return max(0, min(count, round((contents.compressed_fraction * count * width - rows) / (width + 1))))

    def _moving_ps(self, byte_count: int) -> int:
        return -(-byte_count * SECOND // self.machine.dram_bytes_per_s)

    def _scaled(self, layer: Layer, pass_: str, more: int) -> int:
        """Return the time of a step that moves more (or fewer) bytes at the same rate."""
        spent, moved = self.cost.time_ps(layer, self.batch, pass_), self.cost.dram_bytes(layer, self.batch, pass_)
        return round(spent * (moved + more) / moved) if moved > 0 else spent
