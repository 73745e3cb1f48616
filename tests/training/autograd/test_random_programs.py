"""Random small programs against PyTorch: saved tensors, allocations in order with what lives, gradients."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from tests.training.autograd.measured import assert_same  # noqa: E402
from tests.training.autograd.random_programs import random_programs  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("by_cudas_rules"),
    pytest.mark.filterwarnings("ignore:Warning only once for all operators", "ignore:Overriding"),
]


@pytest.mark.parametrize("recipe", ["fp32", "bf16", "autocast"])
@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_program_is_pytorchs(recipe: Any, data: Any):
    program = data.draw(random_programs(recipe))
    assert_same(program, program.inputs, recipe)
