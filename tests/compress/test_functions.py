"""Functions as compressors: the document's example, refused functions, and registration that leaves no state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import buddysim
from buddysim.base import plugin_modules, plugins
from buddysim.base.errors import BuddysimError
from buddysim.compress import algorithms, compress, compressed_bits, decompress, entry_classes, register
from buddysim.compress.compressors import REGISTRY, entry_algorithms
from buddysim.sweep.engine_protocol import plugin_checksums

ROOT = Path(__file__).parents[2]
ENTRY = np.arange(32, dtype="<u4")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    plugin_modules.added.clear()


def halves(data: Any, *, factor: int = 2) -> Any:
    """Half of the entry's bits."""
    return np.full(len(data) // 128, 1024 // factor)


def test_the_example_of_the_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    document = (ROOT / "docs" / "how-to" / "add-a-compressor.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## A compressor as a function$(.*)", document, re.M | re.S)
    (example,) = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    monkeypatch.chdir(ROOT)
    exec(example, {})
    assert float(capsys.readouterr().out) > 1
    assert compressed_bits(ENTRY, "distinct").tolist() == [32 * 32 + 32 * 5]
    assert compressed_bits(bytes(128), "distinct", index_bits=1).tolist() == [32 + 32]
    with pytest.raises(BuddysimError, match="option 'index_bits': 'a': expected int"):
        compressed_bits(bytes(128), "distinct", index_bits="a")


def test_a_function_is_found_by_its_name() -> None:
    assert "halves" not in algorithms()
    register("halves", halves)
    assert "halves" in entry_algorithms()
    assert REGISTRY.find("halves").__doc__ == "Half of the entry's bits."
    assert compressed_bits(bytes(256), "halves", factor=4).tolist() == [256, 256]
    assert compressed_bits(bytes(256), "halves").dtype == np.uint32
    assert entry_classes(ENTRY, "halves").tolist() == [4]
    for call in (lambda: compress(ENTRY, "halves"), lambda: decompress(b"", "halves", 128)):
        with pytest.raises(BuddysimError, match=r"^halves: gives sizes only"):
            call()


def test_both_directions() -> None:
    register(
        "stored",
        lambda data: np.full(len(data) // 128, 1024),
        compress=lambda data: data.tobytes(),
        decompress=lambda payload, nbytes: payload.tobytes(),
    )
    assert decompress(compress(ENTRY, "stored"), "stored", 128) == ENTRY.tobytes()


def test_results_name_a_function_with_the_checksum_of_its_source() -> None:
    register("halves", halves)
    register("twice", lambda data: np.full(len(data) // 128, 512))
    register("builtin", len)
    sums = plugins.checksums()
    assert {"halves", "twice", "builtin"} <= sums.keys()
    assert len({*sums.values()}) == len(sums)
    result = buddysim.simulate(ROOT / "traces" / "vectoradd-turing.bin", scheme="ideal")
    assert result.provenance["plugins"]["halves"] == sums["halves"]
    assert plugin_checksums(["compressor"])["halves"] == sums["halves"]


@pytest.mark.parametrize("name", ["bpc", "halves", "Halves", "a_b", "-a", "", "../bpc", 7])
def test_names_that_are_taken_or_are_none(name: Any) -> None:
    register("halves", halves)
    with pytest.raises(BuddysimError, match=r"there is one of that name already|expected a name of small letters"):
        register(name, halves)
    assert compressed_bits(bytes(128), "halves").tolist() == [512]


def test_what_is_no_compressor() -> None:
    with pytest.raises(BuddysimError, match="compressor 'mine': expected functions"):
        register("mine", 7)  # type: ignore[arg-type]

    def without(data: Any, *, factor: int) -> Any:
        return factor

    with pytest.raises(BuddysimError, match="parameter 'factor': expected a default"):
        register("mine", without)
    assert "mine" not in algorithms()


@pytest.mark.parametrize("wrong", [7, [1], [1.5, 2.5], [-1, 2], [[1], [2]], "ab", None])
def test_sizes_that_are_none(wrong: Any) -> None:
    register("wrong", lambda data: wrong)
    with pytest.raises(BuddysimError, match=r"^wrong: sizes of 2 entries: got .*: expected 2 integers from 0$"):
        compressed_bits(bytes(256), "wrong")
