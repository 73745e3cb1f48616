"""The columns of a table of results: which ones a screen shows, in which order, and in which unit."""

from __future__ import annotations

import pytest

from buddysim.sweep.distinguishing_columns import distinguishing_columns, quantity, sort_rows, varying_columns


def test_machine_keys_are_shown_if_they_vary_within_one_machine() -> None:
    rows = [
        {"key": "a", "machine": "v100", "l2.ways": "24", "dram.channels": "32"},
        {"key": "b", "machine": "a100-40", "l2.ways": "16", "dram.channels": "40"},
        {"key": "c", "machine": "a100-40", "l2.ways": "32", "dram.channels": "40"},
    ]
    assert distinguishing_columns(rows, ()) == ["key", "machine", "l2.ways"]


def test_rows_without_machine_are_distinguished_by_any_key() -> None:
    """Damaged results have no machine; machine keys then count where any differ."""
    rows = [{"key": "a", "l2.ways": "24"}, {"key": "b", "l2.ways": "16"}]
    assert distinguishing_columns(rows, ()) == ["key", "l2.ways"]


def test_keys_of_a_link_are_derived_from_the_link() -> None:
    one = {"machine": "titan-x", "link": "pcie3", "link.d2h_bandwidth": 12.8e9, "time_ms": 3.0}
    rows = [{"key": "a", **one}, {"key": "b", **one, "link": "nvlink2", "link.d2h_bandwidth": 75e9}]
    assert distinguishing_columns(rows, ("time_ms",)) == ["key", "machine", "link", "time_ms"]
    changed = [*rows, {"key": "c", **one, "link.d2h_bandwidth": 9e9}]
    assert "link.d2h_bandwidth" in distinguishing_columns(changed, ("time_ms",))


def test_default_link_of_each_machine_does_not_vary() -> None:
    rows = [{"key": "a", "machine": "v100", "link": "pcie3"}, {"key": "b", "machine": "gh200", "link": "nvlink-c2c"}]
    assert distinguishing_columns(rows, ()) == ["key", "machine"]


@pytest.mark.parametrize(("sizes", "shown"), [("synthetic", True), ("captured", False)])
def test_sizes_are_shown_if_any_are_synthetic(sizes: str, shown: bool) -> None:
    rows = [{"key": "a", "scheme": "buddy", "sizes": sizes}, {"key": "b", "scheme": "ideal"}]
    assert ("sizes" in distinguishing_columns(rows, ())) == shown


def test_rows_are_sorted_by_value() -> None:
    rows = [{"scheme": "ideal", "batch": 128}, {"scheme": "buddy", "batch": 32}, {"scheme": "buddy", "batch": 256}]
    assert varying_columns(rows, ["key", "scheme", "batch"]) == ["scheme", "batch"]
    assert [row["batch"] for row in sort_rows(rows, ["scheme", "batch"])] == [32, 256, 128]
    assert [row["batch"] for row in sort_rows(rows, ["batch"])] == [32, 128, 256]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("time_ps", "time_ps"),
        ("stall.offload_ms", "time_ms"),
        ("l2.size", "bytes"),
        ("memory.peak_bytes", "bytes"),
        ("link.bandwidth", "bandwidth"),
        ("link.d2h_bandwidth", "bandwidth"),
        ("clock.core", "frequency"),
        ("training.fp32", "flops"),
        ("l2.ways", None),
        ("scheme", None),
    ],
)
def test_quantity_of_a_column(name: str, expected: str | None) -> None:
    assert quantity(name) == expected
