"""English text as numbers of words: the language's reference that comes with Python (``pydoc_data.topics``)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from buddysim.workloads.training.problem import TrainingProblem

if TYPE_CHECKING:
    import torch

VOCABULARY: Final = 3584  # nearly all of its words; the last number stands for all others


@cache
def _numbers() -> NDArray[np.int64]:
    """Return the whole text, with its topics sorted by name."""
    from pydoc_data.topics import topics

    words = re.findall(r"\w+|[^\w\s]", "\n".join(topics[name] for name in sorted(topics)).lower())
    counts = Counter(words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: VOCABULARY - 1]
    number = {word: at for at, word in enumerate(ranked)}
    return np.array([number.get(word, VOCABULARY - 1) for word in words], np.int64)


def batches(problem: TrainingProblem) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield batches of excerpts from half of the text, at positions by the seed.

    Yields
    ------
    int64 (batch, size): words; int64 (batch * size,): the word that follows each
    """
    import torch

    text = _numbers()
    half = len(text) // 2
    random = np.random.default_rng([problem.seed, problem.part])
    while True:
        starts = problem.part * half + random.integers(0, half - problem.size - 1, problem.batch)
        excerpts = text[starts[:, None] + np.arange(problem.size + 1)]
        yield torch.from_numpy(excerpts[:, :-1].copy()), torch.from_numpy(excerpts[:, 1:].reshape(-1).copy())
