"""``validate dram``: errors relative to a range."""

from __future__ import annotations

import pytest

from buddysim.validation import REGISTRY, ValidationOptions, dram
from buddysim.validation.dram import StreamBandwidth, load_reference
from tests.validation.stored import stored_rows, table_rows


def test_error_is_relative_to_the_nearer_end_of_the_range() -> None:
    inside, above, below = (
        StreamBandwidth("v100", "random_32", fraction, (0.4, 0.5)) for fraction in (0.45, 0.55, 0.3)
    )
    assert (inside.error, above.error, below.error) == pytest.approx((0, 0.1, -0.25))
    assert (inside.tolerance, StreamBandwidth("v100", "read", 1, (1, 1)).tolerance) == (0.1, 0.05)


def test_presets_without_a_reference_are_not_checked(monkeypatch) -> None:
    monkeypatch.setattr(dram, "bandwidth_fraction", lambda machine, stream: 0.5)
    quantities = REGISTRY.find("dram").compare(ValidationOptions()).quantities
    assert {row.machine for row in quantities if row.status == "not checked"} == {"a100-80", "gtx-1080-ti", "gv100"}
    assert len([row for row in quantities if row.tolerance is not None]) == sum(
        not stream.endswith("_evicting") for streams in load_reference().values() for stream in streams
    )


@pytest.mark.slow
def test_stored_table_is_up_to_date() -> None:
    assert table_rows(REGISTRY.find("dram").compare(ValidationOptions("v100")).quantities) == [
        row for row in stored_rows("dram") if row[1] == "v100"
    ]
