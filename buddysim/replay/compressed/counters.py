"""Counters of the compressors and decompressors."""

from __future__ import annotations

from buddysim.replay.component.counted import PartCounters, waits
from buddysim.replay.primitives.kinds import Queue

COUNTERS: PartCounters = {
    "Queueing": {
        "queueing.compressor_histogram": waits(
            Queue.COMPRESSOR, "entries", "entries for the compressor or decompressor of their slice"
        ),
    },
}
