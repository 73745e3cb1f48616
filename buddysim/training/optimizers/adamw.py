"""AdamW."""

from buddysim.training.optimizers._adam import AdamRule

ORDER = 40
OPTIMIZER = AdamRule("adamw", "Adam with decoupled weight decay: the same state", decoupled=True)
