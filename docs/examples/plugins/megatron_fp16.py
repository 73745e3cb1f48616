"""A recipe of your own: weights in half precision, masters in single precision, gradients scaled (Megatron's fp16)."""

from buddysim.training.autograd.dtypes import float16
from buddysim.training.recipes import Recipe

RECIPE = Recipe(
    "megatron-fp16", "fp16 weights, fp32 masters and state, scaler", float16, "fp16", masters=True, scaler=True
)
