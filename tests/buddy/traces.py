"""Small trace files for the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from buddysim.compress import STUDY_CLASSES, entry_classes
from buddysim.trace import Provenance, Trace, TraceWriter, open_trace

BASE = 0x7F0000000000
PAGE = 8192


def _entry_of_class(number: int) -> bytes:
    """Return an entry that BPC compresses to a size class: words with as many random bits as needed."""
    rng = np.random.default_rng(number)
    candidates = [np.full(32, word, dtype="<u4") for word in (0, 7)]
    candidates += [np.array([1, 2**32 - 1] * 16, dtype="<u4")]
    candidates += [rng.integers(0, 2**bits, 32).astype("<u4") for bits in range(33)]
    return next(entry.tobytes() for entry in candidates if entry_classes(entry)[0] == number)


ENTRY_OF_CLASS = [_entry_of_class(number) for number in range(len(STUDY_CLASSES))]


def entries(classes: Sequence[int]) -> NDArray[np.uint8]:
    """Return data values whose entries have the given classes."""
    return np.frombuffer(b"".join(ENTRY_OF_CLASS[number] for number in classes), dtype=np.uint8)


def write_trace(
    path: Path,
    allocations: Mapping[str, int],
    snapshots: Sequence[tuple[int, Mapping[str, Sequence[int]]]] = (),
    host: Sequence[str] = (),
    as_size_maps: bool = False,
) -> Trace:
    """Write and open a trace without kernels.

    Parameters
    ----------
    path : the file
    allocations : entries by name
    snapshots : points, and for each the classes of whole allocations
    host : names of allocations in host memory
    as_size_maps : write the classes as size maps, not as data values of those sizes
    """
    with TraceWriter(path, Provenance("test")) as writer:
        index = {}
        base = BASE
        for name, n in allocations.items():
            index[name] = writer.add_allocation(name, base, n * 128, "host" if name in host else "device")
            base += n * 128 + 2**21
        for point, known in snapshots:
            snapshot = writer.add_snapshot(point)
            for name, classes in known.items():
                if as_size_maps:
                    writer.add_size_map(snapshot, index[name], np.array(classes, dtype=np.uint8))
                else:
                    writer.add_contents(snapshot, index[name], entries(classes))
    return open_trace(path)
