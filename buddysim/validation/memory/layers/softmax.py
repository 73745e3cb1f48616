"""``benchmark_softmax.py``."""

from __future__ import annotations

from buddysim.training.autograd import functional as F
from buddysim.validation.memory.layers.rowwise import LigerRowKernel, row_script

KERNEL = "softmax"
SETUPS = {
    "liger": lambda config: row_script(config, lambda x: LigerRowKernel.apply(x, True)),
    "torch": lambda config: row_script(config, lambda x: F.softmax(x, -1)),
}
