"""Launches from the searches of CSWAP's Fig. 12 were simulated directly, and the table's times are near."""

from __future__ import annotations

import pytest

from buddysim.gpu_codecs import LAYOUTS
from buddysim.papers.cswap.codec_models import checks, searches

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_found_is_simulated_directly(layout: str) -> None:
    pytest.importorskip("sklearn")
    checked = [one for one in checks() if one.layout == layout]
    for search, ended in searches(layout).items():
        assert {one.launch for one in ended} == {one.launch for one in checked if one.search == search}
    assert len({one.byte_count for one in checked if one.search == "BO"}) == 2
    for one in checked:
        assert one.table_ms == pytest.approx(one.direct_ms, rel=0.12), one
