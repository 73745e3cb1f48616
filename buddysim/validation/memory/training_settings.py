"""The readings of `llm_readings.toml` as settings of a simulated step: what a row's cells and its source decide.

Each source has one function for all of its rows. A row that it can't set up gets the reason instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from buddysim.training.architectures.published import contents
from buddysim.validation.memory.measured_rows import MeasuredTraining

GIB = 1 << 30
GB = 10**9


@dataclass(frozen=True)
class TrainingSettings:
    """What is simulated for a row.

    Attributes
    ----------
    config : content of a ``config.json``
    batch, optimizer : of a micro-step
    options : keywords of `network_from_config`
    checkpoints : every layer is computed again
    offloads : what is saved goes to the host
    unit : bytes of the unit that the row is printed in
    """

    config: Mapping[str, Any]
    batch: int
    optimizer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    checkpoints: bool = False
    offloads: bool = False
    unit: int = GIB

    @property
    def unit_name(self) -> str:
        return "GiB" if self.unit == GIB else "GB"


Settings = TrainingSettings | str


def settings_of(row: MeasuredTraining) -> Settings:
    """Return what is simulated for a row, or why nothing is."""
    reading = _READINGS.get(row.source_set)
    return row.cells["reason"] if reading is None else reading(row)


def _written_by(name: str, architecture: str, model_type: str) -> Mapping[str, Any]:
    """The configuration of a model, as another library's classes have it."""
    keys = {key: value for key, value in contents()[name].items() if not key.startswith("_")}
    return {**keys, "architectures": [architecture], "model_type": model_type}


def _torchtune_flags(row: MeasuredTraining) -> Settings:
    cells = row.cells
    if row.id.endswith("-001"):
        return cells["reason"]
    options: dict[str, Any] = {
        "sequence": 4096,
        "recipe": "bf16",
        "packed": 4,
        "compile": cells["compile"] == "yes",
        "loss": "chunked:8" if cells["loss"].startswith("8 chunks") else "whole",
        "optimizer_variant": "fused",
    }
    options |= _adapters(cells)
    if "fused into the backward pass" in cells["optimizer"]:
        options["optimizer_in_backward"] = True
    optimizer = "adamw"
    if "8bit" in cells["optimizer"]:
        optimizer, options["optimizer_variant"] = "adamw-8bit", "torchao"
    config = _written_by("llama-3.2-3b", "TransformerDecoder", "torchtune")
    offloads = "OffloadActivations" in cells["offload"]
    return TrainingSettings(config, 2, optimizer, options, cells["recompute"].startswith("full"), offloads)


def _adapters(cells: Mapping[str, str]) -> dict[str, Any]:
    if not cells["lora"]:
        return {}
    quantized = cells["lora"].startswith("QLoRA")
    return {"lora": "64,q_proj,v_proj,output_proj,w1,w2,w3", "qlora": quantized, "lora_library": "torchtune"}


def _torchao_optimizers(row: MeasuredTraining) -> Settings:
    cells = row.cells
    if not cells["model"].startswith("llama"):
        return cells["reason"]
    names = {
        "AdamW fused": ("adamw", "fused"),
        "bitsandbytes 8-bit": ("adamw-8bit", "bitsandbytes"),
        "torchao 8-bit": ("adamw-8bit", "torchao"),
        "torchao 4-bit": ("adamw-4bit", "torchao"),
    }
    optimizer, variant = next(value for name, value in names.items() if cells["optimizer"].startswith(name))
    options = {"sequence": 1304, "recipe": "bf16", "loss": "chunked:8", "optimizer_variant": variant}
    config = _written_by("llama-2-7b", "TransformerDecoder", "torchtune")
    return TrainingSettings(config, 2, optimizer, options, cells["recompute"].startswith("full"))


def _litgpt(row: MeasuredTraining) -> Settings:
    cells = row.cells
    if cells["compile"] != "eager":
        return cells["reason"]
    if cells["gpus"] != "1":
        return "Fabric's FSDP and DDP of 2024 (FSDP 1, flat parameters of a block) are not simulated"
    options = {"sequence": 2048, "recipe": "bf16", "accumulation": 128, "optimizer_variant": "fused"}
    return TrainingSettings(_written_by("tinyllama-1.1b", "GPT", "litgpt"), 4, "adamw", options, unit=GB)


_READINGS: Mapping[str, Callable[[MeasuredTraining], Settings]] = {
    "torchtune-flags": _torchtune_flags,
    "torchao-optim": _torchao_optimizers,
    "litgpt-thunder": _litgpt,
}
