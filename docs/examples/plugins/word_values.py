"""An analysis of your own: which 32-bit words memory holds most, over all snapshots of the run.

``python -m buddysim analyse --plugin word_values.py TRACE.bin --only word-values``
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from buddysim.analyses import AnalysisOptions, AnalysisResult
from buddysim.base.errors import BuddysimError
from buddysim.trace import Trace

SUMMARY = "the words of 32 bits that memory holds most"
COLUMNS = ("value", "words_fraction")
MOST = 8


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each of the most frequent words, of the bytes that the snapshots hold."""
    counted: Counter[int] = Counter()
    for snapshot in trace.snapshots:
        for contents in snapshot.contents:
            for _, data in contents.blocks():
                words = np.frombuffer(data.tobytes()[: len(data) // 4 * 4], "<u4")
                values, counts = np.unique(words, return_counts=True)
                counted.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
    if not counted:
        raise BuddysimError(f"{trace.path}: has no bytes in its snapshots: expected a trace with some")
    total = sum(counted.values())
    rows = [(f"{value:#010x}", count / total) for value, count in counted.most_common(MOST)]
    return AnalysisResult(f"the {len(rows)} most frequent words", COLUMNS, rows, ("measured: bytes of the snapshots",))
