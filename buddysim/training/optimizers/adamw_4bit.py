"""AdamW with moment estimates of 4 bits, two in a byte, in blocks of 128: torchao's ``AdamW4bit``."""

from buddysim.training.optimizers._quantized import QuantizedAdam

ORDER = 60
OPTIMIZER = QuantizedAdam("adamw-4bit", "AdamW with moment estimates of 4 bits: 1.06 B for each weight", 4, 128)
