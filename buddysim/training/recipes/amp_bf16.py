"""Weights in single precision under ``torch.autocast("cuda", torch.bfloat16)``."""

from buddysim.training.autograd.dtypes import bfloat16, float32
from buddysim.training.recipes.recipe import Recipe

ORDER = 40
RECIPE = Recipe("amp-bf16", "fp32 weights, autocast to bf16", float32, "bf16", autocast=bfloat16)
