"""Weights, gradients and the optimizer's state in bf16 (``model.to(torch.bfloat16)``)."""

from buddysim.training.autograd.dtypes import bfloat16
from buddysim.training.recipes.recipe import Recipe

ORDER = 50
RECIPE = Recipe("bf16", "weights, gradients and optimizer state in bf16", bfloat16, "bf16")
