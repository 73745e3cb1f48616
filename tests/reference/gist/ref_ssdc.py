"""Reference model of `ssdc`."""

from __future__ import annotations

from collections.abc import Sequence


def encode(words: Sequence[int], columns: int = 256) -> tuple[list[int], list[int], list[int]]:
    """Nonzero words, their columns, and the number of nonzero words up to each row's end."""
    rows = [words[first : first + columns] for first in range(0, len(words), columns)]
    nonzeros = [[(column, word) for column, word in enumerate(row) if word] for row in rows]
    ends = [sum(len(row) for row in nonzeros[: n + 1]) for n in range(len(nonzeros))]
    return [word for row in nonzeros for _, word in row], [column for row in nonzeros for column, _ in row], ends


def decode(values: Sequence[int], indices: Sequence[int], ends: Sequence[int], count: int, columns: int) -> list[int]:
    """The words."""
    words = [0] * count
    for row, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        for column, value in zip(indices[first:last], values[first:last], strict=True):
            words[row * columns + column] = value
    return words
