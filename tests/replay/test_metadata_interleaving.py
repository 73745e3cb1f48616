"""Look-ups of metadata by `metadata_cache.interleaving` equal the reference model's on random traces and machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replay.random_cases import random_case
from tests.replay.test_reference_machine import differences_in


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 14), marks=pytest.mark.slow)])
@pytest.mark.parametrize("interleaving", ["hashed", "own_slice"])
def test_interleaved_metadata_equal_the_reference_model(interleaving: str, seeds: range, tmp_path: Path) -> None:
    outcomes = []
    for seed in seeds:
        case = random_case(seed, "buddy", ("simple", "banked")[seed % 2])
        case.machine["metadata_cache.interleaving"] = interleaving
        case.machine["metadata_cache.hop_latency"] = f"{1 + 9 * seed} ns"
        outcomes.append(differences_in(case, tmp_path))
    assert not any(outcomes)
    assert outcomes.count(None) <= 2  # refused cases
