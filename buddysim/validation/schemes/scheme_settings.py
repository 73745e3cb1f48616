"""What is simulated for the rows of each source, as `docs/validation/method.md` reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from buddysim.machine.training import TrainingMachine
from buddysim.training.architectures.published import contents
from buddysim.training.driver import simulate
from buddysim.training.options.checkpoint_rule import COMPUTE_INTENSIVE
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.result import TrainingResult
from buddysim.validation.memory.measured_rows import training_rows
from buddysim.validation.memory.training_settings import TrainingSettings, settings_of


@dataclass(frozen=True)
class SimulatedRow:
    """A simulated training.

    Attributes
    ----------
    machine, changed : preset, and keys that the source's machine has otherwise
    config, batch : content of a ``config.json``, samples of a step
    options : keywords of `simulate`: of the configuration and of the scheme
    """

    machine: str
    config: Mapping[str, Any]
    batch: int
    scheme: str = "eager"
    options: Mapping[str, Any] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)

    def simulate(self) -> TrainingResult:
        """Run it."""
        machine = TrainingMachine.load(self.machine)
        if self.changed:
            machine = machine.with_overrides(dict(self.changed), self.machine)
        network = network_from_config(self.config)
        return simulate(network, self.batch, machine, self.scheme, **self.options)


@cache
def simulated_row(source_set: str, name: str) -> SimulatedRow:
    """Return what is simulated for a row of a source.

    Raises
    ------
    KeyError
        a source without a reading
    """
    return _READINGS[source_set](name)


def _torchtune(name: str) -> SimulatedRow:
    """A step as in the comparison of memory; recomputed and offloaded by the schemes of those names."""
    (row,) = [row for row in training_rows() if row.id == name]
    settings = settings_of(row)
    assert isinstance(settings, TrainingSettings)
    options: dict[str, Any] = {**settings.options, "optimizer": settings.optimizer}
    scheme = "eager"
    if settings.checkpoints:
        scheme, options["checkpoint"] = "activation-checkpointing", "block"
    if settings.offloads:
        scheme = "offload-activations"
    return SimulatedRow("a100-80", settings.config, settings.batch, scheme, options)


#: timm's ``vit_giant_patch14_dinov2`` on images of 224 x 224, with the MLP of `ViTForImageClassification` at the width
#: that gives as many parameters as its gated one.
VIT_GIANT = {
    "architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 1536, "num_hidden_layers": 40,
    "num_attention_heads": 24, "intermediate_size": 6144, "hidden_act": "gelu", "image_size": 224, "patch_size": 14,
    "num_channels": 3, "qkv_bias": True, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "num_labels": 45,
}  # fmt: skip
#: Two channels of DDR4-3200, what a Ryzen 5 5600 supports at most; six cores.
DESKTOP = {"training.host_memory_bandwidth": "51.2 GB/s", "training.host_cores": "6"}


def _torchao(name: str) -> SimulatedRow:
    number = name[-3:]
    options: dict[str, Any] = {"recipe": "bf16", "optimizer": "adamw", "optimizer_variant": "fused"}
    options |= {"checkpoint": "block", "compile": number in ("005", "006")}
    scheme = "activation-checkpointing" if number in ("001", "005") else "offload-optimizer"
    if number == "002":
        options["update_order"] = "deepspeed"
    if number in ("003", "006"):
        options["keep_gradients"] = True
    return SimulatedRow("rtx-4070-ti-super", VIT_GIANT, 32, scheme, options, DESKTOP)


def _torchtitan(name: str) -> SimulatedRow:
    stored = f"operators:{','.join(COMPUTE_INTENSIVE)}"
    options: dict[str, Any] = {
        "sequence": 8192, "recipe": "bf16-master", "optimizer": "adamw", "optimizer_variant": "fused", "fsdp": 8,
        "alloc_conf": "expandable_segments:True",
        "checkpoint": stored if name.endswith("001") else "block",
    }  # fmt: skip
    return SimulatedRow("h100-96", contents()["llama-3.1-8b"], 1, "activation-checkpointing", options)


#: Budget of host memory in GiB.
_STORED_ON_HOST = {"offload-pr-012": 5, "offload-pr-013": 8, "offload-pr-014": 10}


def _offload_pr(name: str) -> SimulatedRow:
    """Torchtitan's training with selective recomputation, whose stored results are offloaded; defer 8."""
    without = _torchtitan("torchtitan-pr-001")
    if name not in _STORED_ON_HOST:
        return without
    options = {**without.options, "offload_results": _STORED_ON_HOST[name], "offload_defer": 8}
    return replace(without, scheme="offload-activations", options=options)


_READINGS: Mapping[str, Callable[[str], SimulatedRow]] = {
    "torchtune-flags": _torchtune,
    "torchao-offload": _torchao,
    "torchtitan-pr": _torchtitan,
    "offload-pr": _offload_pr,
}
