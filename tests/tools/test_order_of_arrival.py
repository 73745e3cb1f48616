"""The stored times in both orders are those of the shipped traces, and the page tells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import order_of_arrival as tool

TRACES = Path(__file__).parents[2] / "traces"


def test_each_shipped_trace_has_its_times() -> None:
    assert {(row.trace, row.scheme) for row in tool.stored()} == {
        (path.stem, scheme) for path in TRACES.glob("*.bin") for scheme in tool.SCHEMES
    }


@pytest.mark.parametrize("trace", ["lud256", "matmul-pascal", "vectoradd-ampere"])
def test_stored_times_are_those_of_a_replay(trace: str) -> None:
    assert tool.times_of(TRACES / f"{trace}.bin") == [row for row in tool.stored() if row.trace == trace]


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["backprop16k", "kv-cache", "nw2048", "vectoradd-turing"])
def test_more_stored_times_are_those_of_a_replay(trace: str) -> None:
    assert tool.times_of(TRACES / f"{trace}.bin") == [row for row in tool.stored() if row.trace == trace]


def test_the_page_has_the_largest_change() -> None:
    largest = max(tool.stored(), key=lambda row: abs(row.change))
    (line,) = [line for line in tool.page().splitlines() if line.startswith(f"| `{largest.trace}` ")]
    assert f"{100 * largest.change:+.2f} %" in line
    assert f"largest {abs(largest.change):.1%}".replace("%", " %") in tool.page()
