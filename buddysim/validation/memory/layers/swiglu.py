"""``benchmark_swiglu.py``."""

from __future__ import annotations

from buddysim.validation.memory.layers.gated import gated_script

KERNEL = "swiglu"
SETUPS = {
    "liger": lambda config: gated_script(config, config["B"], True),
    "huggingface": lambda config: gated_script(config, config["B"], False),
}
