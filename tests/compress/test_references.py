"""Every compressor with a reference model is as that; catalogue, options and document. Contracts: tests/contracts."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress, entry_classes
from buddysim.compress.compressors import algorithms, entry_algorithms, find, profile_options, tensor_algorithms
from buddysim.compress.tensors import described
from tests.compress.entries import entry
from tests.compress.tensors import words

REFERENCES = [name for name in algorithms() if hasattr(find(name), "REFERENCE")]
windows = st.sampled_from([128, 1024, 4096, 65536])


def reference_of(name: str) -> Any:
    return import_module(find(name).REFERENCE)  # type: ignore[attr-defined]


def of_reference(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [name for name in names if name in REFERENCES])


def test_every_compressor_of_the_package_but_libraries_has_a_reference() -> None:
    assert set(algorithms()) - set(REFERENCES) == {"zlib", "lz4"}


@of_reference(entry_algorithms())
@given(entries=st.lists(entry, max_size=6))
@settings(max_examples=60)
def test_entries(name: str, entries: list[bytes]) -> None:
    data = b"".join(entries)
    options = profile_options(find(name), [np.frombuffer(data, np.uint8)])
    payload = compress(data, name, **options)
    assert reference_of(name).compressed_bits(data, **options) == compressed_bits(data, name, **options).tolist()
    assert reference_of(name).compress(data, **options) == payload
    assert reference_of(name).decompress(payload, len(data), **options) == data
    assert decompress(payload, name, len(data), **options) == data


@of_reference(tensor_algorithms())
@given(tensor=words(), window=windows)
@settings(max_examples=60)
def test_windows_of_a_tensor(name: str, tensor: bytes, window: int) -> None:
    payload = compress(tensor, name, window=window)
    assert reference_of(name).compressed_bits(tensor, window=window) == (
        compressed_bits(tensor, name, window=window).tolist()
    )
    assert reference_of(name).compress(tensor, window=window) == payload
    assert reference_of(name).decompress(payload, len(tensor), window=window) == tensor
    assert decompress(payload, name, len(tensor), window=window) == tensor


@pytest.mark.parametrize("name", algorithms())
def test_options_are_checked(name: str) -> None:
    for option, default in find(name).OPTIONS.items():
        find(name, {option: default})
        with pytest.raises(BuddysimError, match=f"{name}: option '{option}': "):
            find(name, {option: object()})
    with pytest.raises(BuddysimError, match=f"{name}: option 'mumble': unknown"):
        find(name, {"mumble": 1})


@pytest.mark.parametrize("name", sorted(set(algorithms()) - set(entry_algorithms())))
def test_compressors_of_tensors_have_no_size_classes(name: str) -> None:
    with pytest.raises(
        BuddysimError, match=f"{name}: size classes are of entries.*expected one of {entry_algorithms()[0]}"
    ):
        entry_classes(bytes(128), name)


def test_provenance_is_in_the_description() -> None:
    text = described(algorithms())
    for name in algorithms():
        assert name in text
        if hasattr(find(name), "provenance"):
            assert f"{name} ({find(name).provenance()})" in text  # type: ignore[attr-defined]


def test_the_document_has_compressors_with_their_options() -> None:
    """The page describes the bundled compressors; `python -m buddysim list compressor` lists all."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "compressors.md").read_text(encoding="utf-8")
    rows = {name: cells for name, *cells in re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| (.+) \|$", text, re.MULTILINE)}
    described = [name for name in rows if name in {*entry_algorithms(), *tensor_algorithms()}]
    assert len(described) > 3
    for name in described:
        data = [
            kind for kind, names in (("entries", entry_algorithms()), ("tensors", tensor_algorithms())) if name in names
        ]
        assert rows[name][0] == ", ".join(data)
        assert re.findall(r"`(\w+)(?:=[^`]*)?`", rows[name][1]) == list(find(name).OPTIONS)
        assert f"(`{name}`)" in text
