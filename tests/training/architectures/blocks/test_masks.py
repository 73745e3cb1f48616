"""Numbers of a mask, by the kind of attention."""

from __future__ import annotations

import pytest

from buddysim.training.architectures.blocks.masks import causal_mask
from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import DType, bfloat16, bool8
from buddysim.training.options.config_options import Attention, ConfigOptions


@pytest.mark.parametrize(("attention", "expected"), [("eager", bfloat16), ("efficient", bool8), ("flash", None)])
def test_written_out_attention_adds_a_mask_and_the_operator_takes_truth_values(
    attention: Attention, expected: DType | None
) -> None:
    """A window of as many tokens as there are needs a mask in the operator, too."""
    with Tape() as tape:
        mask = causal_mask(ConfigOptions(attention=attention), tape.empty((2, 8, 4), bfloat16, "input"), window=8)
    assert (mask.dtype if mask is not None else None) is expected
    assert mask is None or mask.shape == (2, 1, 8, 8)
