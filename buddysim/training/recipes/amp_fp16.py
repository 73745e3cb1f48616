"""Weights in single precision under ``torch.autocast("cuda", torch.float16)``, with ``torch.amp.GradScaler``."""

from buddysim.training.autograd.dtypes import float16, float32
from buddysim.training.recipes.recipe import Recipe

ORDER = 30
RECIPE = Recipe(
    "amp-fp16", "fp32 weights, autocast to fp16, gradients scaled", float32, "fp16", autocast=float16, scaler=True
)
