"""``benchmark_megatron_cross_entropy.py``: the losses of tokens, summed; Megatron's own losses aren't simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.autograd.dtypes import bfloat16, int64
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, leaf, scalar
from buddysim.validation.memory.layers.cross_entropy import LigerCrossEntropy

KERNEL = "megatron_cross_entropy"


def _script(config: Mapping[str, Any]) -> LayerScript:
    shape = config["S"], config["B"]
    logits = leaf((*shape, config["V"]), bfloat16)
    target = active_tape().input(shape, int64)

    def run() -> list[Tensor]:
        losses = LigerCrossEntropy.apply(logits.reshape(-1, config["V"]), target.reshape(-1), False)
        y = losses.reshape(*shape)
        return [y.sum(), y]

    return LayerScript(run, scalar, dropped=[logits])


SETUPS = {"liger": _script}
