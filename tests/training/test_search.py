"""The last batch of which nothing exceeds the memory, and how few are tried for it."""

from __future__ import annotations

from typing import cast

import pytest

from buddysim.training.fit_check import FitCheck, FitChecks
from buddysim.training.search import _last, largest_batch


@pytest.mark.parametrize("most", [1, 2, 499, 500, 998, 999, 1000])
def test_the_last_batch_that_fits_is_found_from_few(most: int) -> None:
    """A linear function needs one secant and its neighbour; a bound that grows slowly doesn't delay it."""
    tried = set()

    def excess(batch: int) -> tuple[int, int]:
        assert 1 <= batch <= 1000
        tried.add(batch)
        return 8 * (batch - most), batch - 2000

    assert _last(excess, 1, 1000) == most
    assert len(tried) <= 4


def test_no_batch_may_fit() -> None:
    assert _last(lambda batch: (batch, 0), 3, 9) == 2


class Ranges:
    """Batches whose algorithms change behind `ends`; up to `most` a batch could fit, and those of `fitting` do."""

    def __init__(self, ends: tuple[int, ...], most: int, fitting: set[int]) -> None:
        self.ends, self.most, self.fitting = ends, most, fitting

    def algorithms(self, batch: int) -> int:
        return sum(batch > end for end in self.ends)

    def check(self, batch: int) -> FitCheck:
        over = batch - self.most
        return FitCheck(batch in self.fitting, (over, over), (over, over))


@pytest.mark.parametrize(
    ("ends", "fitting", "largest"),
    [((), {30}, 30), ((20,), {7}, 7), ((10, 20), {3, 5}, 5), ((10, 20), {15}, 15), ((10,), set(), 0)],
)
def test_every_range_of_batches_with_the_same_algorithms_is_tried(
    ends: tuple[int, ...], fitting: set[int], largest: int
) -> None:
    """Where fragmentation refuses all of a range, the one before it has the answer."""
    assert largest_batch(cast(FitChecks, Ranges(ends, 30, fitting)), 100) == largest
