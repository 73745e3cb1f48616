"""The largest batch, held against trying them all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.training import schemes
from buddysim.training.driver import carry_out
from buddysim.training.iteration.plan import Options
from buddysim.training.result import TrainingResult
from buddysim.training.search import largest_batch
from tests.training.doubles import machine
from tests.training.random_networks import costs, networks

SCHEMES = ("base-m", "vdnn-all-m", "vdnn-conv-p", "vdnn-dyn", "save-on-cpu", "checkpoint")


class Tried:
    """As much of a result as the search reads."""

    def __init__(self, outcome) -> None:
        self.outcome = outcome
        self.counters = {"fits": outcome.fits}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_larger_batch_fits(data: st.DataObject):
    network = data.draw(networks())
    cost = data.draw(costs(network))
    scheme = data.draw(st.sampled_from(SCHEMES))
    options = Options(memory_bytes=data.draw(st.integers(8, 400)) * 1024)
    limit = 40

    def simulated(batch: int) -> TrainingResult:
        plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine(), cost, scheme, options)
        return Tried(carry_out(network, batch, machine(), cost, plan, options))  # type: ignore[return-value]

    found, result = largest_batch(simulated, limit)
    every = [batch for batch in range(1, limit + 1) if simulated(batch).outcome.fits]
    assert found == max(every, default=0)
    assert result.outcome.batch == max(found, 1)


@pytest.mark.parametrize("scheme", ["oracle"])
def test_without_a_bound_the_limit_is_found(scheme: str):
    from buddysim.training.driver import simulate

    assert largest_batch(lambda batch: simulate("nin-cifar10", batch, "titan-x", scheme), 300)[0] == 300
