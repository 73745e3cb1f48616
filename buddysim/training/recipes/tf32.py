"""Single precision in memory; tensor cores round operands of products to 10 bits (``allow_tf32``)."""

from buddysim.training.autograd.dtypes import float32
from buddysim.training.recipes.recipe import Recipe

ORDER = 20
RECIPE = Recipe("tf32", "the memory of fp32, products by tensor cores", float32, "tf32")
