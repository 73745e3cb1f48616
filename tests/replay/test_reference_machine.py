"""The engine equals its reference model (tests/reference/replay), to the picosecond, on random traces and machines.

The model was written from docs/reference/replay-rules.md by someone who had not read the engine. A failure names the
case, and
`random_case(seed, scheme, model)` makes it again.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.replay.schemes import REGISTRY
from buddysim.trace import open_trace
from tests.reference.replay.replay import replay
from tests.replay.random_cases import Case, random_case, with_copies_in_time, write_case

#: Seeds of the usual run, by replay scheme; the others have less that could go wrong.
QUICK = {"buddy": range(11, 25), "bandwidth-compression": range(6), "unified-memory": range(6)}
FEW = range(4)
SLOW = range(1000, 1300)
CASES = [(scheme, model) for scheme in REGISTRY.names() for model in ("simple", "banked")]
#: Counters that the simulation does not determine.
ELSEWHERE = (
    "provenance",
    "sensitivity.",
    "slowdown.",
    "scheme",
    "sizes.synthetic",
    "compression.synthetic",
)


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def differences(seed: int, scheme: str, model: str, folder: Path) -> dict[str, Any] | None:
    """As `differences_in`, of a random case; of odd seeds, its copies take time."""
    case = random_case(seed, scheme, model)
    return differences_in(with_copies_in_time(case) if seed % 2 else case, folder)


def differences_in(case: Case, folder: Path) -> dict[str, Any] | None:
    """Counters in which the engine and the reference differ: (engine's, reference's); None where the run is refused."""
    machine, scheme = case.make_machine(), case.scheme
    with open_trace(write_case(case, folder / "trace.bin")) as trace:
        targets = case.make_targets(trace)
        try:
            engine = buddysim.simulate(trace, machine, scheme, targets, queueing=True, **case.options).to_dict()
        except BuddysimError:
            return None
        reference = replay(trace, machine, scheme, targets, **case.options)
    decided = {key: value for key, value in engine.items() if not key.startswith(ELSEWHERE)}
    return {key: (value, reference.get(key)) for key, value in decided.items() if not same(value, reference.get(key))}


def check(seeds: range, scheme: str, model: str, folder: Path) -> None:
    refused = 0
    for seed in seeds:
        different = differences(seed, scheme, model, folder)
        refused += different is None
        if different:
            shown = ", ".join(f"{key}: {value}" for key, value in list(different.items())[:3])
            pytest.fail(
                f"random_case({seed}, {scheme!r}, {model!r}): {len(different)} counters (engine, reference): {shown}",
                False,
            )
    assert refused <= len(seeds) // 10


@pytest.mark.parametrize(("scheme", "model"), CASES)
def test_engine_equals_reference_model(scheme: str, model: str, tmp_path: Path) -> None:
    check(QUICK.get(scheme, FEW), scheme, model, tmp_path)


def test_the_row_of_a_write_that_has_waited_is_activated_when_its_drain_is_decided(tmp_path: Path) -> None:
    """And no sooner, although the row could have been opened when the write came."""
    check(range(1178, 1179), "buddy", "banked", tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("scheme", "model"), CASES)
def test_engine_equals_reference_model_on_many(scheme: str, model: str, tmp_path: Path) -> None:
    check(SLOW, scheme, model, tmp_path)
