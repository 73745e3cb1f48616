"""Stochastic gradient descent."""

from buddysim.training.optimizers._descent import GradientDescent

ORDER = 10
OPTIMIZER = GradientDescent("sgd", "stochastic gradient descent, no state", momentum=False)
