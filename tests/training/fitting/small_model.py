"""A model of four blocks or, for quick tests, of two, and questions about it."""

from __future__ import annotations

from functools import cache
from typing import Any

import buddysim
from buddysim.training.fitting.fit_result import FitResult
from buddysim.training.recorded_step.from_config import ConfigNetwork, network_from_config
from tests.training.step.small_config import CONFIG

LARGER = {**CONFIG, "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 4, "num_attention_heads": 8,
          "num_key_value_heads": 8, "max_position_embeddings": 1024, "vocab_size": 2048}  # fmt: skip
#: With context, libraries and fragmentation; on an H100 without a plan it takes 1,310 MiB.
BUDGET = 1000 * 2**20
#: Of two blocks, which do not fit without a plan, and hardly with a single scheme.
TWO_BLOCKS_BUDGET = 850 * 2**20


@cache
def small_model(sequence: int = 1024, blocks: int = 4) -> ConfigNetwork:
    """Return the model."""
    return network_from_config({**LARGER, "num_hidden_layers": blocks}, sequence=sequence, recipe="bf16")


@cache
def answer_for_two_blocks() -> FitResult:
    """Return the answer for a batch of eight of two blocks, whose search takes half the time."""
    return buddysim.fit(small_model(blocks=2), "h100-sxm", TWO_BLOCKS_BUDGET, batch=8)


@cache
def answer(budget: int | None = BUDGET, machine: str = "h100-sxm", **options: Any) -> FitResult:
    """Return the answer for a batch of eight."""
    return buddysim.fit(small_model(), machine, budget, batch=8, **options)
