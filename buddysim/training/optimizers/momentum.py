"""Stochastic gradient descent with an average of the gradients."""

from buddysim.training.optimizers._descent import GradientDescent

ORDER = 20
OPTIMIZER = GradientDescent("momentum", "the same with momentum: a number for each weight", momentum=True)
