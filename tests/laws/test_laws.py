"""The laws on the first random machines and traces; `make laws` checks 10,000."""

from __future__ import annotations

import pytest

from tests.laws.laws import BETTER, Violation, non_monotonic, unexplained, violations

QUICK, SLOW = 12, 300


def check(seeds: range) -> None:
    broken: list[Violation] = []
    for seed in seeds:
        broken += unexplained(list(violations(seed)))
    assert not broken, "\n".join(map(str, broken))


@pytest.mark.parametrize("chunk", range(4))
def test_laws_hold(chunk: int) -> None:
    check(range(chunk * QUICK // 4, (chunk + 1) * QUICK // 4))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(6))
def test_laws_hold_on_many(chunk: int) -> None:
    check(range(chunk * SLOW // 6, (chunk + 1) * SLOW // 6))


def test_the_list_of_exceptions_is_small_and_says_why() -> None:
    for key, entries in non_monotonic().items():
        assert key in BETTER
        for cause, entry in entries.items():
            assert cause in ("order", "queue")
            assert 0 < entry["largest"] < 1
            assert entry["seed"] >= 0
            assert len(entry["why"]) > 20
