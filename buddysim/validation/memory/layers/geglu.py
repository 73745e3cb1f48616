"""``benchmark_geglu.py``."""

from __future__ import annotations

from buddysim.validation.memory.layers.gated import gated_script

KERNEL = "geglu"
SETUPS = {
    "liger": lambda config: gated_script(config, config["bsz"], True),
    "huggingface": lambda config: gated_script(config, config["bsz"], False),
}
