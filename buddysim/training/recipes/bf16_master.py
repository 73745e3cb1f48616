"""Weights and gradients in bf16; the optimizer has fp32 masters and estimates."""

from buddysim.training.autograd.dtypes import bfloat16
from buddysim.training.recipes.recipe import Recipe

ORDER = 60
RECIPE = Recipe("bf16-master", "bf16 weights, fp32 masters and optimizer state", bfloat16, "bf16", masters=True)
