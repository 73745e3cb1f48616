"""Measured training steps against their prediction, by part: what whole iterations check and fit.

A step's record gives its operators. Recomputed blocks repeat the forward pass; selective recomputation repeats the
`SELECTIVE` part of it. LLM Foundry's loss is FlashAttention's fused cross-entropy (`loss_fn`, its default): one kernel
reads the logits in 16 bits, whose rows the cache holds, and one writes their gradient. NeuSight times the forward pass
without the loss; where it times no backward pass, the model is in evaluation mode, and BERT has no head for words.
Collectives overlap with kernels, but take multiprocessors and memory bandwidth
from them: `communication` of their time is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import prod
from typing import Any

from buddysim.base.textfile import parse_toml
from buddysim.machine.training import TrainingMachine
from buddysim.training.architectures.published import contents
from buddysim.training.architectures.read_config import read_config
from buddysim.training.autograd.records import TracedOperation
from buddysim.training.collectives import CollectiveTimes
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.operators.rows import TimedStep
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.recorded.work import OperationWork, work_of
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.recorded_step.from_config import ConfigNetwork

SELECTIVE = 0.4
"""Part of the forward pass that torchtitan's selective recomputation repeats: every second product, and what memory
bounds (assumed)."""

BERT_LARGE = {
    "architectures": ["BertForMaskedLM"], "model_type": "bert", "vocab_size": 30522, "hidden_size": 1024,
    "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 512,
    "type_vocab_size": 2, "hidden_act": "gelu", "dtype": "float32",
}  # fmt: skip
"""NeuSight's bert-large, by its paper (Devlin et al., BERT, 2019); trained with the head of masked words."""

GPT3_XL = {"n_layer": 24, "n_embd": 3072, "n_head": 24, "n_positions": 2048, "n_ctx": 2048, "vocab_size": 50257}
"""What NeuSight calls gpt3_xl: keys that replace those of GPT-2."""

FLASH_LOSS = "flash"
"""`TimedStep.loss` of FlashAttention's cross-entropy."""

UNTIMED_LOSS, NO_LOSS = "untimed", "none"
"""`TimedStep.loss` where the forward pass is timed without it, and where an evaluation has none."""

_DROPOUTS = (
    "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop", "dropout", "embd_pdrop", "hidden_dropout_prob",
    "resid_pdrop",
)  # fmt: skip
_WORDS_HEAD = "cls"

LARGE_HEAD = 128
"""Size of head that the fused attention of every GPU was timed with."""

_HALF_BYTES = 2
_LENGTHS = ("max_seq_len", "max_position_embeddings", "n_positions")


@dataclass(frozen=True)
class StepParts:
    """Milliseconds of a step by part, without anything that whole iterations are fitted for.

    Attributes
    ----------
    gpu_ms : kernels other than attention's, recomputed ones included
    attention_ms, attention_backward_ms : of the flash kernel of version 2
    host_ms : of the host's line
    collectives_ms : of gathers and reductions, were they alone
    update_ms : of the optimizer, of the part of the weights that this GPU has
    head_size : of attention; 0 without fused attention
    """

    gpu_ms: float
    attention_ms: float
    attention_backward_ms: float
    host_ms: float
    collectives_ms: float
    update_ms: float
    head_size: int = 0


@dataclass(frozen=True)
class IterationConstants:
    """What whole iterations are fitted for.

    Attributes
    ----------
    communication : part of the time of collectives that kernels lose, although both overlap
    flash1 : time of FlashAttention 1's kernels over version 2's, forward and backward, by GPU
    flash1_small_heads : factor of these for heads smaller than `LARGE_HEAD`: version 1 loses less on them
    """

    communication: float
    flash1: Mapping[str, Mapping[str, float]]
    flash1_small_heads: float

    def flash1_gpu(self, gpu: str) -> str:
        """Return the GPU whose factors count for a GPU: itself, else one of its compute capability, else the first."""
        if gpu in self.flash1:
            return gpu
        own = TrainingMachine.load(gpu).training.compute_capability
        alike = (one for one in self.flash1 if TrainingMachine.load(one).training.compute_capability == own)
        return next(alike, next(iter(self.flash1)))


@cache
def iteration_constants() -> IterationConstants:
    """Load the constants that ship."""
    path = resources.files("buddysim.training.cost") / "data" / "iterations" / "fitted.toml"
    content = parse_toml(path.read_text(encoding="utf-8"))
    return IterationConstants(content["communication"], content["flash1"], content["flash1_small_heads"])


def network_of_step(step: TimedStep) -> RecordedNetwork:
    """Return the record of a measured step."""
    keys: dict[str, Any]
    if step.model == "bert-large":
        keys = dict(BERT_LARGE)
    elif step.model == "gpt3-xl":
        keys = {**contents()["gpt2-large"], **GPT3_XL}
    else:
        keys = dict(contents()[step.model])
    for name in _LENGTHS:
        if name in keys:
            keys[name] = max(int(keys[name]), step.tokens)
    attention = "eager" if step.attention == "eager" else "flash"
    loss = "whole" if step.loss in (FLASH_LOSS, UNTIMED_LOSS, NO_LOSS) else step.loss
    if step.loss == NO_LOSS:
        keys |= dict.fromkeys(_DROPOUTS, 0.0)
    options: dict[str, Any] = {"recipe": step.recipe, "attention": attention, "loss": loss}
    options |= {"sequence": step.tokens, "compile": step.compile == "compiled"}
    network = ConfigNetwork(read_config(keys), ConfigOptions(**options))
    return network.at(step.batch, "adamw" if step.part == "step" else "none")


def parts_of(step: TimedStep, network: RecordedNetwork, cost: CostModel) -> StepParts:
    """Return the predicted parts of a measured step.

    Parameters
    ----------
    network : `network_of_step`
    cost : times of operators
    """
    requested = ("forward", "backward", "optimizer") if step.part == "step" else (step.part,)
    again = {"none": 0.0, "full": 1.0, "selective": SELECTIVE}[step.recompute]
    head_size = 0
    spent = dict.fromkeys(("gpu", "forward", "backward", "update", "host"), 0.0)
    for operation in network.tape.operations:
        if operation.phase not in requested:
            continue
        work = _work(step, operation, network.tape.compiled)
        if work is None:
            continue
        times = 1.0 + (again if operation.phase == "forward" else 0.0)
        sharing = step.gpus if step.sharding == "fsdp" else 1
        parts = sharing * step.accumulation if operation.phase == "optimizer" else 1
        ms = cost.operation_ps(work) / 1e9
        spent["host"] += times * cost.launch_ps(work) / 1e9 / (step.accumulation if parts > 1 else 1)
        if operation.phase == "optimizer":
            spent["update"] += ms / parts
        elif work.attention is None:
            spent["gpu"] += times * ms
        else:
            head_size = work.attention.head_size
            spent["backward" if work.backward else "forward"] += times * ms
    return StepParts(
        spent["gpu"], spent["forward"], spent["backward"], spent["host"], _collectives_ms(step, network, cost.machine),
        spent["update"], head_size,
    )  # fmt: skip


def _work(step: TimedStep, operation: TracedOperation, compiled: bool) -> OperationWork | None:
    """Return the work of an operation in the step as it was measured; None where the step has none of the kind."""
    work = work_of(operation, compiled)
    of_loss = operation.scope == "loss"
    if step.loss in (UNTIMED_LOSS, NO_LOSS) and operation.phase == "forward":
        in_head = step.loss == NO_LOSS and operation.scope.partition(".")[0] == _WORDS_HEAD
        return None if of_loss or in_head else work
    if step.loss != FLASH_LOSS or not of_loss:
        return work
    if operation.name not in ("_log_softmax", "_log_softmax_backward_data"):
        return None
    logits = prod(operation.writes[0].shape) * _HALF_BYTES
    return work._replace(bytes=2 * logits if work.backward else logits, kind="elementwise")


def _collectives_ms(step: TimedStep, network: RecordedNetwork, machine: TrainingMachine) -> float:
    """Milliseconds of collectives.

    Full sharding gathers weights twice in 16 bits and reduces gradients as the weights are stored; DDP reduces those
    for all.
    """
    if step.sharding == "none" or step.part != "step":
        return 0.0
    stored = sum(one.bytes for one in network.tape.storages if one.kind == "parameter")
    gathered = stored // 2 if step.recipe == "amp-bf16" else stored
    times = CollectiveTimes(machine)
    if step.sharding == "ddp":
        return times.time_ps("all_reduce", stored, step.gpus) / 1e9
    gather = times.time_ps("all_gather", gathered, step.gpus)
    return (2 * gather + times.time_ps("reduce_scatter", stored, step.gpus)) / 1e9


def has_small_heads(step: TimedStep, parts: StepParts) -> bool:
    """Return whether a step has version 1 of attention with heads smaller than `LARGE_HEAD`."""
    return step.attention == "flash1" and parts.head_size < LARGE_HEAD


def step_ms(step: TimedStep, parts: StepParts, constants: IterationConstants) -> float:
    """Return the predicted milliseconds of a step: the longer of the GPU's and the host's line."""
    slower: Mapping[str, float] = {"forward": 1.0, "backward": 1.0}
    if step.attention == "flash1":
        slower = constants.flash1[constants.flash1_gpu(step.gpu)]
    attention = slower["forward"] * parts.attention_ms + slower["backward"] * parts.attention_backward_ms
    if has_small_heads(step, parts):
        attention *= constants.flash1_small_heads
    gpu = parts.gpu_ms + attention + parts.update_ms + constants.communication * parts.collectives_ms
    return max(gpu, parts.host_ms)
