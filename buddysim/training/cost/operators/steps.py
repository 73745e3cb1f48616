"""Measured training steps against their prediction, by part: what whole iterations check and fit.

A step's record gives its operators. Recomputed blocks repeat the forward pass; selective recomputation repeats the
`SELECTIVE` part of it. Collectives of full sharding overlap with kernels, but take multiprocessors and memory bandwidth
from them: `communication` of their time is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from buddysim.base.textfile import parse_toml
from buddysim.machine.training import TrainingMachine
from buddysim.training.architectures.published import contents
from buddysim.training.collectives import CollectiveTimes
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.operators.rows import TimedStep
from buddysim.training.networks.from_config import network_from_config
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.recorded.work import work_of

SELECTIVE = 0.4
"""Part of the forward pass that torchtitan's selective recomputation repeats: every second product, and what memory
bounds (assumed)."""

BERT_LARGE = {
    "architectures": ["BertForMaskedLM"], "model_type": "bert", "vocab_size": 30522, "hidden_size": 1024,
    "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 512,
    "type_vocab_size": 2, "hidden_act": "gelu", "dtype": "float32",
}  # fmt: skip
"""NeuSight's bert-large, by its paper (Devlin et al., BERT, 2019); the head is that of masked words (assumed)."""

GPT3_XL = {"n_layer": 24, "n_embd": 3072, "n_head": 24, "n_positions": 2048, "n_ctx": 2048, "vocab_size": 50257}
"""What NeuSight calls gpt3_xl: keys that replace those of GPT-2."""

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
    """

    gpu_ms: float
    attention_ms: float
    attention_backward_ms: float
    host_ms: float
    collectives_ms: float
    update_ms: float


@dataclass(frozen=True)
class IterationConstants:
    """What whole iterations are fitted for.

    Attributes
    ----------
    communication : part of the time of collectives that kernels lose, although both overlap
    flash1 : time of FlashAttention 1's kernels over version 2's, forward and backward, by GPU
    """

    communication: float
    flash1: Mapping[str, Mapping[str, float]]


@cache
def iteration_constants() -> IterationConstants:
    """Load the constants that ship."""
    path = resources.files("buddysim.training.cost") / "data" / "iterations" / "fitted.toml"
    content = parse_toml(path.read_text(encoding="utf-8"))
    return IterationConstants(content["communication"], content["flash1"])


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
    options = {"sequence": step.tokens, "recipe": step.recipe, "attention": attention, "loss": step.loss}
    network = network_from_config(keys, **options, compile=step.compile == "compiled")
    return network.at(step.batch, "adamw" if step.part == "step" else "none")


def parts_of(step: TimedStep, cost: CostModel | None = None) -> StepParts:
    """Return the predicted parts of a measured step.

    Parameters
    ----------
    cost : times of operators; None: those of the machine
    """
    machine = TrainingMachine.load(step.gpu)
    cost = cost or CostModel.load(machine, precision="fp32" if step.recipe == "fp32" else "bf16")
    network = network_of_step(step)
    requested = ("forward", "backward", "optimizer") if step.part == "step" else (step.part,)
    again = {"none": 0.0, "full": 1.0, "selective": SELECTIVE}[step.recompute]
    spent = dict.fromkeys(("gpu", "forward", "backward", "update", "host"), 0.0)
    for operation in network.tape.operations:
        if operation.phase not in requested:
            continue
        work = work_of(operation, network.tape.compiled)
        times = 1.0 + (again if operation.phase == "forward" else 0.0)
        parts = step.gpus * step.accumulation if operation.phase == "optimizer" else 1
        ms = cost.operation_ps(work) / 1e9
        spent["host"] += times * cost.launch_ps(work) / 1e9 / (step.accumulation if parts > 1 else 1)
        if operation.phase == "optimizer":
            spent["update"] += ms / parts
        elif work.attention is None:
            spent["gpu"] += times * ms
        else:
            spent["backward" if work.backward else "forward"] += times * ms
    return StepParts(
        spent["gpu"], spent["forward"], spent["backward"], spent["host"], _collectives_ms(step, network, machine),
        spent["update"],
    )  # fmt: skip


def _collectives_ms(step: TimedStep, network: RecordedNetwork, machine: TrainingMachine) -> float:
    """Milliseconds of full sharding: weights gathered twice in 16 bits, gradients reduced as the weights are stored."""
    if step.gpus < 2 or step.part != "step":
        return 0.0
    stored = sum(one.bytes for one in network.tape.storages if one.kind == "parameter")
    gathered = stored // 2 if step.recipe == "amp-bf16" else stored
    times = CollectiveTimes(machine)
    gather = times.time_ps("all_gather", gathered, step.gpus)
    return (2 * gather + times.time_ps("reduce_scatter", stored, step.gpus)) / 1e9


def step_ms(step: TimedStep, parts: StepParts, constants: IterationConstants) -> float:
    """Return the predicted milliseconds of a step: the longer of the GPU's and the host's line."""
    slower = constants.flash1[step.gpu] if step.attention == "flash1" else {"forward": 1.0, "backward": 1.0}
    attention = slower["forward"] * parts.attention_ms + slower["backward"] * parts.attention_backward_ms
    gpu = parts.gpu_ms + attention + parts.update_ms + constants.communication * parts.collectives_ms
    return max(gpu, parts.host_ms)
