"""Pairs of machines on larger traces, in both orders."""

from __future__ import annotations

from tests.laws.larger import Pair, larger_case, pairs, summary
from tests.laws.laws import law_case


def test_larger_traces_have_up_to_16_blocks_of_4_to_60_instructions() -> None:
    sizes = {False: [0, 0], True: [0, 0]}
    for seed in range(60):
        for larger, (case, _) in ((True, larger_case(seed)), (False, law_case(seed))):
            for word, *rest in case.events:
                if word == "kernel":
                    counts = [len(ops) for _, warps in rest[0].blocks for _, ops in warps]
                    sizes[larger] = [max(sizes[larger][0], rest[0].grid), max([sizes[larger][1], *counts])]
    assert sizes[True] == [16, 60]
    assert sizes[False][0] == 12


def test_each_pair_is_compared_in_both_orders() -> None:
    """They differ in some seed: the order of arrival is another one."""
    every = [pair for seed in range(4) for pair in pairs(seed)]
    by_order = [[one for one in every if one.exact_order == order] for order in (False, True)]
    assert [(one.seed, one.key) for one in by_order[0]] == [(one.seed, one.key) for one in by_order[1]]
    assert any(a.slowdown != b.slowdown for a, b in zip(*by_order, strict=True))


def test_the_summary_counts_slower_pairs() -> None:
    every = [Pair(0, "l1.mshrs", True, slowdown) for slowdown in (-0.5, 0.0005, 0.002, 0.02, 0.04)]
    text = summary([*every, Pair(0, "l2.ways", False, 1.0)], True)
    assert "order of arrival: 3 of 5 pairs slower by over 0.1% (60.00%), 2 by over 1 %, 1 by over 3 %" in text
    assert "worst 4.0% (l1.mshrs, seed 0)" in text
