"""The training part of docs/counters.md and the results agree, key for key."""

from __future__ import annotations

import pytest

from buddysim.training import schemes, simulate
from tests.docs.test_counters import documented


@pytest.mark.parametrize("scheme", schemes.REGISTRY.names())
def test_every_key_is_documented_and_every_documented_key_exists(scheme):
    result = simulate("alexnet-cifar10", 4, "titan-x", scheme).to_dict()
    keys = {key for key in result if key not in ("per_layer", "provenance")}
    keys |= {f"provenance.{key}" for key in result["provenance"]}
    keys |= {f"per_layer.{key}" for row in result["per_layer"] for key in row}
    assert sorted(documented(training=True)) == sorted(keys)


def test_rows_add_up():
    result = simulate("googlenet", 32, "titan-x", "vdnn-all-p").to_dict()
    rows = result["per_layer"]
    assert sum(row["offload_bytes"] for row in rows) == result["offload.bytes"] == result["prefetch.bytes"]
    computing = sum(row["forward_ms"] + row["backward_ms"] + row["recompute_ms"] for row in rows)
    assert computing == pytest.approx(result["compute_ms"])
    stalled = sum(row["forward_stall_ms"] + row["backward_stall_ms"] for row in rows)
    assert stalled == pytest.approx(result["stall_ms"])
    assert result["link.bytes"] == result["offload.bytes"] + result["prefetch.bytes"]
