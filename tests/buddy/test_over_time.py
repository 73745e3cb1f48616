"""Bytes allocated at once, compared with sums at every event index."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from buddysim.buddy.over_time import largest_first_until_none_over, sums_over_time
from buddysim.trace import Allocation

POSITIONS = 9
lifetimes = st.tuples(st.integers(0, POSITIONS), st.none() | st.integers(0, POSITIONS)).map(
    lambda life: (life[0], None if life[1] is None else max(life))
)


def allocations(lives: list[tuple[int, int | None]]) -> list[Allocation]:
    return [
        Allocation(i, f"a{i}", 0, 128, alloc_event=allocated, free_event=freed)
        for i, (allocated, freed) in enumerate(lives)
    ]


@given(
    rows=st.lists(st.tuples(lifetimes, st.integers(0, 9), st.integers(-9, 9)), max_size=12),
    span=st.tuples(st.integers(0, POSITIONS), st.integers(0, POSITIONS)).map(sorted),
)
def test_sums_are_those_of_the_live_allocations(
    rows: list[tuple[tuple[int, int | None], int, int]], span: list[int]
) -> None:
    live = allocations([life for life, _, _ in rows])
    amounts = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 2)
    positions, sums = sums_over_time(live, amounts, *span)
    assert positions[0] == span[0]
    assert list(positions) == sorted(set(positions))
    for position in range(span[0], span[1] + 1):
        here = sums[int(np.searchsorted(positions, position, side="right")) - 1]
        assert list(here) == list(amounts[[a.live_at(position) for a in live]].sum(axis=0))


@given(rows=st.lists(st.tuples(lifetimes, st.integers(1, 6), st.booleans()), max_size=10))
def test_who_is_relieved(rows: list[tuple[tuple[int, int | None], int, bool]]) -> None:
    """Each excess is 3 x the size, 0 once relieved, or minus the size."""
    live = allocations([life for life, _, _ in rows])
    sizes = [size for _, size, _ in rows]
    excess = [3 * size if over else -size for _, size, over in rows]
    relief = [3 * size if over else 0 for _, size, over in rows]
    naive: list[int] = []
    for position in range(POSITIONS + 1):
        here = [i for i, a in enumerate(live) if a.live_at(position)]
        while sum(excess[i] for i in here) - sum(relief[i] for i in naive if i in here) > 0:
            naive.append(max((i for i in here if relief[i] and i not in naive), key=lambda i: (sizes[i], -i)))
    assert largest_first_until_none_over(live, excess, relief, sizes) == naive
