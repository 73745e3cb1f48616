"""The largest batch and sequence, and the most tokens per second, of a small model."""

from __future__ import annotations

import pytest

import buddysim
from buddysim.training.fitting.largest import _last
from buddysim.training.recorded_step.from_config import network_from_config
from tests.training.fitting.small_model import LARGER, small_model

MIB = 2**20


@pytest.mark.parametrize("last", [0, 1, 2, 5, 8, 13])
def test_the_last_number_that_fits(last: int) -> None:
    assert _last(lambda number: number <= last, 13) == last


@pytest.mark.slow
def test_no_larger_batch_fits() -> None:
    result = buddysim.fit(small_model(), "h100-sxm", 700 * MIB, batch="max", tries=0)
    assert result.fits
    assert not buddysim.fit(small_model(), "h100-sxm", 700 * MIB, batch=result.outcome.batch + 1, tries=0).fits


@pytest.mark.slow
def test_the_longest_sequence_has_the_models_positions_at_most() -> None:
    model = network_from_config(LARGER, recipe="bf16")
    result = buddysim.fit(model, "h100-sxm", 700 * MIB, batch=8, sequence="max", tries=0)
    assert result.fits
    assert int(result.outcome.network.options["sequence"]) % 128 == 0


@pytest.mark.slow
def test_the_token_rate_is_no_lower_than_that_of_any_power_of_two() -> None:
    best = buddysim.fit(small_model(), "h100-sxm", 700 * MIB, maximize="tokens", tries=0)
    rate = best.result.counters["tokens_per_s"]
    for batch in (1, 2):
        other = buddysim.fit(small_model(), "h100-sxm", 700 * MIB, batch=batch, tries=0)
        assert rate >= other.result.counters["tokens_per_s"]
