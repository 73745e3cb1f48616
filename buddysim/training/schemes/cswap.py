"""CSWAP (Chen et al., CLUSTER 2021): vDNN's `conv` policy, whose sparse feature maps the GPU compresses if it pays.

Candidates are the feature maps that it moves and a ReLU or a max-pooling layer made (Sec. IV). A feature map is encoded
by a step of its own right before the CONV layer that its copy overlaps with, and decoded right before its first
backward use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.option import Option, values
from buddysim.gpu_codecs import REGISTRY
from buddysim.training.contents.activation_options import (
    MAPPING_OPTION,
    contents_assumption,
    make_codec,
    make_mapped_source,
)
from buddysim.training.contents.activation_options import OPTIONS as CONTENTS_OPTIONS
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.stash import Encoding, Offload, Stash
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _advisor, vdnn
from buddysim.training.schemes._codec_times import OPTIONS as CODEC_OPTIONS
from buddysim.training.schemes._codec_times import GpuCodec, gpu_codecs, missing_codecs_text
from buddysim.training.schemes._links import link_rate

if TYPE_CHECKING:
    from buddysim.gpu_codecs.time_model import CodecTiming, LinearModel
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.contents import ActivationSource, MapContents
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Layer, Network

SUMMARY = {
    "cswap-static": "vdnn-conv-p with every offloaded ReLU and max-pool feature map compressed on the GPU",
    "cswap": "vdnn-conv-p with the feature maps that the advisor selects compressed on the GPU",
    "cswap-oracle": "vdnn-conv-p with feature maps compressed in no time if that makes them smaller",
}
FAMILY = "cswap"
ORDER = 300
FACTS = SchemeFacts(
    source="Chen et al., CSWAP, CLUSTER 2021",
    moves="X of CONV layers; the advisor selects those that kernels compress first",
    costs="copies that are not hidden, and codecs",
    applies="CONV layers behind ReLU or max pooling",
    check="`docs/validation/training-papers.md`; `tests/training/schemes/test_cswap.py`",
)
ACCURACY = UNCHANGED
BELOW = "vdnn-conv-p"

PAPER, EXACT = "paper", "exact"
OPTIONS = {
    **CODEC_OPTIONS,
    "cswap_advisor": Option(
        str,
        f"rule of scheme cswap's advisor: {PAPER}, from S (1 - sparsity) bytes and predicted codec times; {EXACT}, "
        "from the stored bytes and the simulated codec times",
        "RULE", PAPER, CODEC_OPTIONS["codec"].group,
    ),
    **CONTENTS_OPTIONS,
    **MAPPING_OPTION,
}  # fmt: skip

_MIB = 2**20
#: Tensors that the time model is fitted to: 20 to 2000 MB, 20 to 80 % zeros (Sec. IV-C).
_FIT_BYTES = tuple(size * _MIB for size in (20, 60, 200, 600, 1200, 2000))
_FIT_SPARSITIES = tuple(percent / 100 for percent in range(20, 81, 5))


@dataclass(frozen=True)
class CodecDecision:
    """One candidate.

    Attributes
    ----------
    owner : the layer whose feature map it is; `layer` wrote its values
    codec : that it is compressed with if it is
    encoding : its encoded form, with simulated times
    """

    owner: int
    layer: Layer
    byte_count: int
    sparsity: float
    codec: str
    encoding: Encoding
    advice: _advisor.Advice
    compress: bool


@dataclass(frozen=True)
class AdvisorInputs:
    """Inputs of the decisions: an iteration without compression, codecs, contents of feature maps."""

    network: Network
    batch: int
    machine: TrainingMachine
    cost: CostModel
    options: TrainingOptions

    @cached_property
    def below(self) -> Plan:
        """vDNN's plan."""
        return vdnn.plan(self.network, self.batch, self.machine, self.cost, BELOW, self.options)

    @cached_property
    def codecs(self) -> tuple[GpuCodec, ...]:
        """Return the codecs that the options allow."""
        return gpu_codecs(self.machine, self.options.extra)

    @cached_property
    def source(self) -> ActivationSource:
        """Return the source of the feature maps' contents."""
        return make_mapped_source(self.network, self.options.extra)

    def contents(self, codec: GpuCodec) -> dict[int, MapContents]:
        """Return the contents of every layer's output, in windows of the kernels unless the user names one."""
        named = {name: value for name, value in self.options.extra.items() if value is not None}
        stored = make_codec(codec.name, {**REGISTRY.find(codec.name).STORED_AS, **named})
        return self.source.contents(self.network, self.batch, stored)


def is_candidate(layer: Layer) -> bool:
    """Whether a layer's output may be compressed: that of ReLU and of max pooling."""
    return layer.kind in ("relu", "maxpool")


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """vDNN's plan, with encodings of the feature maps that the scheme compresses."""
    setting = AdvisorInputs(network, batch, machine, cost, options)
    return plan_of(setting, name, decisions(setting, name))


def plan_of(setting: AdvisorInputs, name: str, taken: Sequence[CodecDecision]) -> Plan:
    """Return the plan of these decisions."""
    below, codecs = setting.below, setting.codecs
    coded = {one.owner: Stash(_encoding(name, one.encoding), offload=Offload()) for one in taken if one.compress}
    times = (
        "Encoding and decoding take no time: a lower bound."
        if name == "cswap-oracle"
        else f"Codec times are {'; '.join(_sources(codecs))}; kernels of the authors may be slower: optimistic."
    )
    missing = missing_codecs_text(setting.options.extra)
    times += f" {missing[0].upper()}{missing[1:]}." if missing else ""
    source = setting.source.description
    compressed = ", ".join(_name(one, codecs) for one in taken if one.compress) or "none"
    notes = (
        *below.notes,
        f"compressed: {len(coded)} of {len(taken)} candidates by {_by(codecs, taken)}: {compressed}",
    )
    assumptions = {"activations": contents_assumption(source), "codec times": times}
    return replace(below, scheme=name, stash={**below.stash, **coded}, notes=notes, assumptions=assumptions)


def _sources(codecs: Sequence[GpuCodec]) -> list[str]:
    """Return the source of codec times, with the codec's name if there are several."""
    return [codec.source if len(codecs) == 1 else f"{codec.name}: {codec.source}" for codec in codecs]


def _by(codecs: Sequence[GpuCodec], taken: Sequence[CodecDecision]) -> str:
    if len(codecs) == 1:
        return codecs[0].name
    counts = Counter(one.codec for one in taken if one.compress)
    return ", ".join(f"{codec.name} ({counts[codec.name]})" for codec in codecs)


def _name(one: CodecDecision, codecs: Sequence[GpuCodec]) -> str:
    return one.layer.name if len(codecs) == 1 else f"{one.layer.name} {one.codec}"


def _encoding(name: str, encoding: Encoding) -> Encoding:
    return Encoding(encoding.byte_count, 0, 0) if name == "cswap-oracle" else encoding


def decisions(setting: AdvisorInputs, name: str) -> list[CodecDecision]:
    """Every candidate, in forward order, and the scheme's decision."""
    network, batch, options = setting.network, setting.batch, setting.options
    rule = values(OPTIONS, options.extra)["cswap_advisor"]
    if rule not in (PAPER, EXACT):
        raise BuddysimError(f"cswap_advisor {shortened(rule)}: expected {PAPER} or {EXACT}{hint(rule, (PAPER, EXACT))}")
    link = link_rate(setting.machine, options.link)
    hidden = _advisor.measure_hiding_times(network, batch, setting.cost, setting.below, link)
    contents = {codec: setting.contents(codec) for codec in setting.codecs}

    def decision(owner: int, codec: GpuCodec) -> CodecDecision:
        writer, size = network.layers[network.last_writer(owner)], network.output_bytes(owner, batch)
        map_contents = contents[codec][writer.index]
        sparsity = _sparsity(map_contents)
        encoding = codec.encoding(size, sparsity, round(size * map_contents.compressed_fraction))
        if rule == EXACT:
            codec_ps = encoding.encode_ps + encoding.decode_ps
            advice = _advisor.exact_advice(size, encoding.byte_count, codec_ps, hidden[owner], link)
        else:
            advice = _advisor.paper_advice(size, sparsity, predicted_ps(codec, size, sparsity), hidden[owner], link)
        compress = _decide(name, size, encoding, advice)
        return CodecDecision(owner, writer, size, sparsity, codec.name, encoding, advice, compress)

    return [
        min((decision(owner, codec) for codec in setting.codecs), key=lambda one: _cost(name, one))
        for owner in hidden
        if is_candidate(network.layers[network.last_writer(owner)])
    ]


def _cost(name: str, one: CodecDecision) -> float:
    """The quantity that selects a codec: the cost of swapping, or the bytes where compression is free."""
    return one.encoding.byte_count if name == "cswap-oracle" else one.advice.compressed_ps


def _decide(name: str, byte_count: int, encoding: Encoding, advice: _advisor.Advice) -> bool:
    if name == "cswap-oracle":
        return encoding.byte_count < byte_count
    return name == "cswap-static" or advice.compress


def _sparsity(contents: MapContents) -> float:
    """The fraction of zeros; of a feature map of which only a ratio is known, what the ratio saves."""
    return 1 - contents.density if contents.density is not None else max(0.0, 1 - contents.compressed_fraction)


def predicted_ps(codec: GpuCodec, byte_count: int, sparsity: float) -> float:
    """The time model's time of compression and decompression."""
    return sum(model.predict(byte_count, sparsity) for model in _time_models(codec).values())


@cache
def _time_models(codec: GpuCodec) -> Mapping[str, LinearModel]:
    """Linear regressions for either direction, fitted to tensors of many sizes."""
    from buddysim.gpu_codecs.time_model import CodecTiming, fit_linear

    rows: dict[str, list[CodecTiming]] = {"encode": [], "decode": []}
    for size in _FIT_BYTES:
        for sparsity in _FIT_SPARSITIES:
            encoding = codec.encoding(size, sparsity, 0)
            rows["encode"].append(CodecTiming(size, sparsity, encoding.encode_ps))
            rows["decode"].append(CodecTiming(size, sparsity, encoding.decode_ps))
    return {direction: fit_linear(samples) for direction, samples in rows.items()}
