"""The last batch of which nothing exceeds the memory, and how few are tried for it."""

from __future__ import annotations

import pytest

from buddysim.training.search import _last


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
