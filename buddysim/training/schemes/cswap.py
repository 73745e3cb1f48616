"""CSWAP (Chen et al., CLUSTER 2021): vDNN's `conv` policy, whose sparse maps the GPU compresses where that pays.

Candidates are the maps that it moves and a ReLU or a max-pooling layer made (Sec. IV). A map is encoded by a step of
its own right before the CONV layer that its copy overlaps with, and decoded right before its first backward use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.gpu_codecs.time_model import LinearModel, Row, fit_linear
from buddysim.training.contents.options import OPTIONS as CONTENTS_OPTIONS
from buddysim.training.contents.options import make_codec, make_source
from buddysim.training.iteration.plan import Options, Plan
from buddysim.training.iteration.stash import Code, Move, Stash
from buddysim.training.option import Option, values
from buddysim.training.schemes import _advisor, vdnn
from buddysim.training.schemes._codec_times import OPTIONS as CODEC_OPTIONS
from buddysim.training.schemes._codec_times import GpuCodec, gpu_codec
from buddysim.training.schemes._links import link_rate

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.contents import MapContents
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Layer, Network

SUMMARY = {
    "cswap-sc": "vdnn-conv-p, every ReLU and max-pool map that moves compressed by the GPU",
    "cswap": "vdnn-conv-p, maps compressed by the GPU where its advisor expects that to pay",
    "cswap-oracle": "vdnn-conv-p, maps compressed in no time where that makes them smaller",
}
ORDER = 62
ACCURACY = "unchanged"
BELOW = "vdnn-conv-p"

PUBLISHED, EXACT = "published", "exact"
OPTIONS = {
    **CODEC_OPTIONS,
    "advisor": Option(
        str,
        f"how cswap decides: {PUBLISHED}, with S (1 - sparsity) bytes and predicted codec times; {EXACT}, with the "
        "timeline's own",
        "RULE", PUBLISHED, CODEC_OPTIONS["codec"].group,
    ),
    **CONTENTS_OPTIONS,
}  # fmt: skip

_MIB = 2**20
#: Tensors that the time model is fitted to: 20 to 2000 MB, 20 to 80 % zeros (Sec. IV-C).
_FIT_BYTES = tuple(size * _MIB for size in (20, 60, 200, 600, 1200, 2000))
_FIT_SPARSITIES = tuple(percent / 100 for percent in range(20, 81, 5))


@dataclass(frozen=True)
class Decision:
    """One candidate.

    Attributes
    ----------
    owner : the layer whose map it is; `layer` made what is in it
    code : its form if it is compressed, with the times of our timeline
    """

    owner: int
    layer: Layer
    byte_count: int
    sparsity: float
    code: Code
    advice: _advisor.Advice
    compress: bool


def is_candidate(layer: Layer) -> bool:
    """Whether a layer's output may be compressed: that of ReLU and of max pooling."""
    return layer.kind in ("relu", "maxpool")


def plan(network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: Options) -> Plan:
    """vDNN's plan, with codes for the maps that the scheme compresses."""
    taken = decisions(network, batch, machine, cost, name, options)
    return plan_of(network, batch, machine, cost, name, options, taken)


def plan_of(
    network: Network,
    batch: int,
    machine: TrainingMachine,
    cost: CostModel,
    name: str,
    options: Options,
    taken: Sequence[Decision],
) -> Plan:
    """The plan of these decisions."""
    below = vdnn.plan(network, batch, machine, cost, BELOW, options)
    codec = gpu_codec(machine, options.extra)
    coded = {one.owner: Stash(_code(name, one.code), move=Move()) for one in taken if one.compress}
    times = "none: free" if name == "cswap-oracle" else codec.source
    source = make_source(options.extra).description
    compressed = ", ".join(one.layer.name for one in taken if one.compress) or "none"
    notes = (
        *below.notes,
        f"compressed: {len(coded)} of {len(taken)} candidates by {codec.name}: {compressed}",
    )
    assumptions = {"activations": source, "codec times": times}
    return replace(below, scheme=name, stash={**below.stash, **coded}, notes=notes, assumptions=assumptions)


def _code(name: str, code: Code) -> Code:
    return Code(code.byte_count, 0, 0) if name == "cswap-oracle" else code


def decisions(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: Options
) -> list[Decision]:
    """Every candidate, in forward order, and what the scheme decides."""
    rule = values(OPTIONS, options.extra)["advisor"]
    if rule not in (PUBLISHED, EXACT):
        raise BuddysimError(
            f"advisor {shortened(rule)}: expected {PUBLISHED} or {EXACT}{hint(rule, (PUBLISHED, EXACT))}"
        )
    below = vdnn.plan(network, batch, machine, cost, BELOW, options)
    link = link_rate(machine, options.link)
    codec, hidden = gpu_codec(machine, options.extra), _advisor.profile(network, batch, cost, below, link)
    contents = make_source(options.extra).contents(network, batch, make_codec(codec.name, options.extra))
    found = []
    for owner, hides in hidden.items():
        writer = network.layers[network.last_writer(owner)]
        if is_candidate(writer):
            size, share = network.output_bytes(owner, batch), contents[writer.index].share
            sparsity = _sparsity(contents[writer.index])
            code = codec.code(size, sparsity, round(size * share))
            if rule == EXACT:
                spent = code.encode_ps + code.decode_ps
                advice = _advisor.exact(size, code.byte_count, spent, hides, link)
            else:
                advice = _advisor.published(size, sparsity, predicted_ps(codec, size, sparsity), hides, link)
            found.append(Decision(owner, writer, size, sparsity, code, advice, _decide(name, size, code, advice)))
    return found


def _decide(name: str, byte_count: int, code: Code, advice: _advisor.Advice) -> bool:
    if name == "cswap-oracle":
        return code.byte_count < byte_count
    return name == "cswap-sc" or advice.compress


def _sparsity(contents: MapContents) -> float:
    """The share of zeros; of a map of which only a ratio is known, what the ratio saves."""
    return 1 - contents.density if contents.density is not None else max(0.0, 1 - contents.share)


def predicted_ps(codec: GpuCodec, byte_count: int, sparsity: float) -> float:
    """The time model's time of compression and decompression."""
    return sum(model.predict(byte_count, sparsity) for model in _time_models(codec).values())


@cache
def _time_models(codec: GpuCodec) -> Mapping[str, LinearModel]:
    """Linear regressions for either direction, fitted to tensors of many sizes."""
    rows: dict[str, list[Row]] = {"encode": [], "decode": []}
    for size in _FIT_BYTES:
        for sparsity in _FIT_SPARSITIES:
            code = codec.code(size, sparsity, 0)
            rows["encode"].append(Row(size, sparsity, code.encode_ps))
            rows["decode"].append(Row(size, sparsity, code.decode_ps))
    return {direction: fit_linear(found) for direction, found in rows.items()}
