"""Sizes that every cache of a machine shares, and the rule of their sets."""

from __future__ import annotations

from buddysim.machine.units import format_size

SECTOR_BYTES = 32
LINE_BYTES = 128


def check_sets(size: int, slices: int, ways: int, line: int) -> None:
    """Refuse a cache whose size is no whole number of sets, in bytes."""
    set_bytes = slices * ways * line
    if size % set_bytes:
        of_slices = f"{slices} slices x " if slices > 1 else ""
        raise ValueError(
            f"size: {format_size(size)} is not an integer number of sets of {of_slices}{ways} ways x {line} B: "
            f"expected a multiple of {format_size(set_bytes)}"
        )
