"""BPC on real memory: fast paths, reference model and both directions on the pages in `data/`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from buddysim.compress import bpc, compress, compressed_bits, decompress, entry_classes, size_class
from tests.reference.compress import ref_bpc

FILES = sorted((Path(__file__).parent / "data").glob("*.bin"))

#: Entries of each size class, 0 to 128 B.
CLASSES = {
    "fdtd2048": [0, 0, 62, 150, 33, 5, 4, 2],
    "lulesh": [121, 64, 0, 2, 61, 0, 1, 7],
    "npb_cg": [38, 0, 0, 1, 128, 0, 0, 89],
    "npb_mg": [192, 0, 0, 0, 0, 0, 0, 64],
    "resnet18_fmnist": [0, 0, 0, 18, 110, 0, 0, 128],
    "seismic": [83, 0, 0, 65, 1, 1, 2, 104],
}


def test_every_sample_is_there() -> None:
    assert [path.stem for path in FILES] == sorted(CLASSES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_sizes_and_codes(path: Path) -> None:
    data = path.read_bytes()
    entries = [data[i : i + 128] for i in range(0, len(data), 128)]
    bits = [len(ref_bpc.encode(entry)) for entry in entries]
    for name in bpc.PATHS[: bpc.PATHS.index(bpc.best_path()) + 1]:
        assert bpc.compressed_bits(np.frombuffer(data, np.uint8), path=name).tolist() == bits
    payloads = [compress(entry) for entry in entries]
    assert [len(payload) for payload in payloads] == [(size + 7) // 8 for size in bits]
    assert [decompress(payload) for payload in payloads] == entries


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_classes(path: Path) -> None:
    data = np.fromfile(path, np.uint8)
    classes = entry_classes(data)
    assert np.bincount(classes, minlength=8).tolist() == CLASSES[path.stem]
    zero = ~data.reshape(-1, 128).any(axis=1)
    stored = size_class(compressed_bits(data), zero=zero)
    assert np.array([0, 8, 16, 32, 64, 80, 96, 128])[classes].tolist() == stored.tolist()
