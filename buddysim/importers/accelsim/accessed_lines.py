"""Infers the allocations of a trace without allocation records from the accessed lines.

The trace's provenance repeats these rules:

- cudaMalloc records are allocations. A trace without them has an allocation for every copied range; overlapping ranges
  are one allocation.
- In other memory, the lines that one instruction of one kernel touches within adjoining pages of 2 MiB span a range.
  Overlapping ranges are one allocation. Adjoining ranges are two: their instructions access different arrays. Ranges
  begin and end with a touched line.
- Allocations begin and end at multiples of 128 B and live for the whole run.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from buddysim.trace.format import LINE_BYTES

_PAGE_LINES = (2 << 20) // LINE_BYTES
_PAGE_SHIFT = np.uint64(_PAGE_LINES.bit_length() - 1)

Range = tuple[int, int]  # first line, line after the last


class AccessedLines:
    """The lines that each instruction touches, page by page."""

    def __init__(self) -> None:
        self._spans: dict[tuple[str, int], dict[int, Range]] = {}
        self._touched: dict[int, npt.NDArray[np.bool_]] = {}

    def add(
        self,
        kernel: str,
        pcs: npt.NDArray[np.uint64],
        n_lines: npt.NDArray[np.uint8],
        lines: npt.NDArray[np.uint64],
    ) -> None:
        """Record the lines of some operations.

        Parameters
        ----------
        kernel : name of the kernel; the same instruction of two launches counts as one
        pcs : program counter of each operation
        n_lines : lines of each operation
        lines : their line words
        """
        if not len(lines):
            return
        numbers = lines >> np.uint64(8)
        line_pcs = np.repeat(pcs, n_lines)
        pages = numbers >> _PAGE_SHIFT
        order = np.lexsort((numbers, pages, line_pcs))
        numbers, line_pcs, pages = numbers[order], line_pcs[order], pages[order]
        new = np.flatnonzero((line_pcs[1:] != line_pcs[:-1]) | (pages[1:] != pages[:-1])) + 1
        starts = np.concatenate(([0], new))
        ends = np.concatenate((new, [len(numbers)]))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            page = int(pages[start])
            spans = self._spans.setdefault((kernel, int(line_pcs[start])), {})
            first, last = int(numbers[start]), int(numbers[end - 1]) + 1
            before = spans.get(page)
            spans[page] = (first, last) if before is None else (min(first, before[0]), max(last, before[1]))
            touched = self._touched.get(page)
            if touched is None:
                touched = self._touched[page] = np.zeros(_PAGE_LINES, dtype=np.bool_)
            touched[(numbers[start:end] & np.uint64(_PAGE_LINES - 1)).astype(np.intp)] = True

    def outside(self, known: list[Range]) -> list[Range]:
        """Return the ranges of touched lines outside the `known` ones, by the rules above."""
        spans = []
        for pages in self._spans.values():
            joined: list[Range] = []
            for page in sorted(pages):
                first, last = pages[page]
                if joined and page <= (joined[-1][1] - 1) // _PAGE_LINES + 1:
                    joined[-1] = (joined[-1][0], last)
                else:
                    joined.append((first, last))
            spans += joined
        parts = [part for span in merge_ranges(spans) for part in subtract_ranges(span, merge_ranges(known))]
        return [trimmed for part in parts if (trimmed := self._trim(part)) is not None]

    def _trim(self, part: Range) -> Range | None:
        """Return a piece from its first touched line to its last."""
        first = last = None
        for page in range(part[0] // _PAGE_LINES, (part[1] - 1) // _PAGE_LINES + 1):
            touched = self._touched.get(page)
            if touched is None:
                continue
            base = page * _PAGE_LINES
            start = max(part[0] - base, 0)
            hits = np.flatnonzero(touched[start : min(part[1] - base, _PAGE_LINES)]) + start + base
            if len(hits):
                first = int(hits[0]) if first is None else first
                last = int(hits[-1]) + 1
        return None if first is None or last is None else (first, last)


def merge_ranges(ranges: list[Range]) -> list[Range]:
    """Return the ranges in order, with overlapping ones merged."""
    result: list[Range] = []
    for first, last in sorted(ranges):
        if result and first < result[-1][1]:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return result


def subtract_ranges(span: Range, known: list[Range]) -> list[Range]:
    """Yield the parts of a range outside the known ranges."""
    parts, at = [], span[0]
    for first, last in known:
        if last <= at or first >= span[1]:
            continue
        if first > at:
            parts.append((at, first))
        at = max(at, last)
    if at < span[1]:
        parts.append((at, span[1]))
    return parts
