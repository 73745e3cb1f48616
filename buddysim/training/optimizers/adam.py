"""Adam."""

from buddysim.training.optimizers._adam import AdamRule

ORDER = 30
OPTIMIZER = AdamRule("adam", "Adam: two moment estimates for each weight", decoupled=False)
