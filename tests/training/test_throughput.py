"""Samples and tokens per second are those of all GPUs and micro-steps."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.training import simulate
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.throughput import Throughput
from tests.training.sharding.test_fully_sharded import CONFIG


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (1, 3, None)),
        ({"sequence": 10, "fsdp": None}, (1, 3, 30)),
        ({"sequence": 10, "ddp": 4, "accumulation": 5}, (4, 60, 600)),
        ({"zero3": 8, "accumulation": 1}, (8, 24, None)),
    ],
)
def test_by_hand(options: dict[str, Any], expected: tuple[int, int, int | None]) -> None:
    assert Throughput.of(options, 3) == expected


def test_counters_divide_them_by_the_time() -> None:
    network = network_from_config(CONFIG, sequence=8, fsdp=4, accumulation=3)
    counters = simulate(network, 2, "h100-sxm", "eager").counters
    seconds = counters["time_ms"] / 1e3
    assert counters["gpus"] == 4
    assert counters["samples_per_s"] == pytest.approx(4 * 3 * 2 / seconds)
    assert counters["tokens_per_s"] == pytest.approx(4 * 3 * 2 * 8 / seconds)
    described = simulate("alexnet", 16, "titan-x", "oracle").counters
    assert (described["gpus"], described["tokens_per_s"]) == (1, None)
    assert described["samples_per_s"] == pytest.approx(16e3 / described["time_ms"])
