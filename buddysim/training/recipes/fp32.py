"""Single precision throughout, with products on the ordinary cores."""

from buddysim.training.autograd.dtypes import float32
from buddysim.training.recipes.recipe import Recipe

ORDER = 10
RECIPE = Recipe("fp32", "single precision throughout", float32, "fp32")
