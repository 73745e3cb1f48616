"""The search for cycles is paused within, and goes on as before."""

from __future__ import annotations

import gc

from buddysim.base.garbage import collection_paused


def test_the_search_is_paused_and_goes_on_as_before() -> None:
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
