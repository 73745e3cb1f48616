"""``benchmark_fused_add_rms_norm.py``: the residual is added first and is an output too; all three layers exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, dtype_of, leaf

KERNEL = "fused_add_rms_norm"


def _naive(weight: Parameter, hidden_states: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
    input_dtype = hidden_states.dtype
    hidden_states = hidden_states.to(float32)
    residual = residual.to(float32)
    hidden_states = hidden_states + residual
    residual = hidden_states
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    hidden_states = hidden_states * (variance + 1e-6).rsqrt()
    return weight * hidden_states.to(input_dtype), residual.to(input_dtype)


def _script(config: Mapping[str, Any]) -> LayerScript:
    shape, dtype = (config["M"], config["H"]), dtype_of(config)
    x, r, weight = leaf(shape, dtype), leaf(shape, dtype), leaf(shape[1:], float32)
    gradients = [F.ones(shape, dtype) for _ in range(2)]
    return LayerScript(lambda: list(_naive(weight, x, r)), lambda _: list(gradients))


SETUPS = {"huggingface": _script}
