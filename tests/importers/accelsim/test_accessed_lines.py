"""Allocations are inferred from accesses."""

from __future__ import annotations

import numpy as np

from buddysim.importers.accelsim.accessed_lines import AccessedLines, merge_ranges, subtract_ranges

PAGE = 2**21 // 128  # lines


def touch(footprint: AccessedLines, pc: int, lines: list[int], kernel: str = "k") -> None:
    words = np.array([number << 8 | 0xF for number in lines], np.uint64)
    footprint.add(kernel, np.full(len(lines), pc, np.uint64), np.ones(len(lines), np.uint8), words)


def test_overlapping_ranges_of_instructions_are_merged() -> None:
    footprint = AccessedLines()
    touch(footprint, 1, [100, 150])
    touch(footprint, 2, [140, 200])
    touch(footprint, 2, [160])
    assert footprint.outside([]) == [(100, 201)]


def test_adjacent_ranges_stay_separate() -> None:
    footprint = AccessedLines()
    touch(footprint, 1, [100, 149])
    touch(footprint, 2, [150, 200])
    touch(footprint, 1, [150, 199], kernel="another")
    assert footprint.outside([]) == [(100, 150), (150, 201)]


def test_a_range_of_an_instruction_continues_over_adjacent_pages_only() -> None:
    footprint = AccessedLines()
    touch(footprint, 1, [PAGE - 10, PAGE + 5, 2 * PAGE + 7, 5 * PAGE])
    assert footprint.outside([]) == [(PAGE - 10, 2 * PAGE + 8), (5 * PAGE, 5 * PAGE + 1)]


def test_known_allocations_and_untouched_ends_are_excluded() -> None:
    footprint = AccessedLines()
    touch(footprint, 1, [100, 120, 180, 300])
    assert footprint.outside([(110, 150), (200, 250)]) == [(100, 101), (180, 181), (300, 301)]
    assert footprint.outside([(0, 1000)]) == []


def test_ranges() -> None:
    assert merge_ranges([(5, 9), (0, 3), (3, 4), (8, 12)]) == [(0, 3), (3, 4), (5, 12)]
    assert subtract_ranges((0, 10), [(2, 4), (4, 5), (9, 20)]) == [(0, 2), (5, 9)]
