"""Bounds of the options of a model's configuration."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.options.config_options import ConfigOptions


def test_a_sequence_has_1_to_2_to_the_24_tokens() -> None:
    for tokens in (1, 1 << 24):
        assert ConfigOptions(sequence=tokens).sequence == tokens
    for tokens in (0, (1 << 24) + 1):
        with pytest.raises(BuddysimError, match=f"sequence {tokens}: expected 1 to 16777216 tokens"):
            ConfigOptions(sequence=tokens)
