"""Offload in compiled models: copies stay and wait for what they waited for; host memory is that of the record."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.training import simulate
from buddysim.training.recorded_step.from_config import network_from_config
from tests.cli.test_train_config import CONFIG

INPUT = 2 * 64 * 128 * 2  # of a block: batch, tokens, width, bf16


def counters(scheme: str, is_compiled: bool = True, **options: Any) -> dict[str, Any]:
    network = network_from_config(CONFIG, sequence=64, compile=is_compiled)
    return simulate(network, 2, "h100-sxm", scheme, **options).counters


@pytest.mark.parametrize(
    ("scheme", "options"),
    [("offload-activations", {"checkpoint": "block"}), ("offload-optimizer", {}), ("offload-weights", {})],
)
def test_copies_are_those_of_eager_code(scheme: str, options: dict[str, Any]) -> None:
    one, eager = counters(scheme, **options), counters(scheme, is_compiled=False, **options)
    for name in ("offload.bytes", "prefetch.bytes", "host.peak_pinned_bytes"):
        assert one[name] == eager[name] > 0
    assert one["prefetch.bytes"] >= 3 * INPUT
