"""``benchmark_relu_squared.py``."""

from __future__ import annotations

from buddysim.training.autograd import functional as F
from buddysim.validation.memory.layers.rowwise import LigerRowKernel, row_script

KERNEL = "relu_squared"
SETUPS = {
    "liger": lambda config: row_script(config, lambda x: LigerRowKernel.apply(x, False)),
    "torch": lambda config: row_script(config, lambda x: F.square(F.relu(x))),
}
