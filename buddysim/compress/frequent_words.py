"""The most frequent words of data: what frequent-value compression makes its table of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Distinct words of several blocks that are kept apart before they are counted together.
_MERGED_AT = 1 << 22


def frequent_words(blocks: Iterable[NDArray[Any]], count: int) -> tuple[int, ...]:
    """The `count` most frequent 32-bit words, the most frequent first, of equally frequent ones the smaller unsigned.

    Parameters
    ----------
    blocks : data in parts, each contiguous; a last word that isn't whole is padded with zeros
    count : number of requested words; fewer are returned if the data have fewer

    Notes
    -----
    Exact, at 12 bytes of memory per distinct word of all blocks.
    """
    words, counts = np.empty(0, np.uint32), np.empty(0, np.int64)
    waiting: list[tuple[NDArray[np.uint32], NDArray[np.int64]]] = []
    for block in blocks:
        raw = block.reshape(-1).view(np.uint8)
        padded = np.pad(raw, (0, -len(raw) % 4)) if len(raw) % 4 else raw
        waiting.append(np.unique(padded.view("<u4"), return_counts=True))
        if sum(len(some) for some, _ in waiting) > _MERGED_AT:
            words, counts = _together([(words, counts), *waiting])
            waiting = []
    words, counts = _together([(words, counts), *waiting])
    order = np.lexsort((words, -counts))[:count]
    return tuple(words[order].tolist())


def _together(
    counted: list[tuple[NDArray[np.uint32], NDArray[np.int64]]],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Counts of the same words added up; words sorted."""
    words = np.concatenate([some for some, _ in counted])
    if not len(words):
        return words, np.empty(0, np.int64)
    order = np.argsort(words, kind="stable")
    words, counts = words[order], np.concatenate([number for _, number in counted])[order]
    firsts = np.flatnonzero(np.concatenate(([True], words[1:] != words[:-1])))
    return words[firsts], np.add.reduceat(counts, firsts)
