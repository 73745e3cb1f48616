"""Contract of every registered compressor: lossless round trip, sizes that agree with payloads, errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, compressed_bits, decompress, entry_classes
from buddysim.compress.compressors import algorithms, entry_algorithms, find, profile_options, tensor_algorithms
from buddysim.compress.tensors import described, tensor_ratios
from tests.compress.entries import entry
from tests.compress.tensors import words

REFERENCES = [name for name in algorithms() if hasattr(find(name), "REFERENCE")]
FROM_DENSITY = [name for name in algorithms() if hasattr(find(name), "fraction_of_density")]
windows = st.sampled_from([128, 1024, 4096, 65536])


def reference_of(name: str) -> Any:
    return import_module(find(name).REFERENCE)  # type: ignore[attr-defined]


def payload_bits(data: bytes, name: str, options: dict[str, object]) -> NDArray[np.uint32]:
    """Sizes with all that a payload has."""
    return compressed_bits(data, name, **options | getattr(find(name), "PAYLOAD_OPTIONS", {}))


def decompressed_or_refused(payload: bytes, name: str, nbytes: int, **options: object) -> bytes | None:
    try:
        return decompress(payload, name, nbytes, **options)
    except BuddysimError as error:
        assert str(error).startswith(f"{name}: ")
        assert "\n" not in str(error)
        return None


def test_every_compressor_takes_entries_or_tensors() -> None:
    installed = {name for name in algorithms() if not hasattr(find(name), "available") or find(name).available()}  # type: ignore[attr-defined]
    assert installed == {*entry_algorithms(), *tensor_algorithms()}
    assert REFERENCES
    assert FROM_DENSITY


@pytest.mark.parametrize("name", entry_algorithms())
@given(entries=st.lists(entry, max_size=6))
@settings(max_examples=60)
def test_entries(name: str, entries: list[bytes]) -> None:
    data = b"".join(entries)
    options = profile_options(find(name), [np.frombuffer(data, np.uint8)])
    sizes = compressed_bits(data, name, **options)
    assert sizes.dtype == np.uint32
    assert sizes.tolist() == [int(compressed_bits(raw, name, **options)[0]) for raw in entries]
    payload = compress(data, name, **options)
    assert len(payload) == (int(payload_bits(data, name, options).sum()) + 7) // 8
    assert decompress(payload, name, len(data), **options) == data
    if name in REFERENCES:
        assert reference_of(name).compressed_bits(data, **options) == sizes.tolist()
        assert reference_of(name).compress(data, **options) == payload
        assert reference_of(name).decompress(payload, len(data), **options) == data
    assert decompress(compress(data, name), name, len(data)) == data


@pytest.mark.parametrize("name", tensor_algorithms())
@given(tensor=words(), window=windows)
@settings(max_examples=60)
def test_windows_of_a_tensor(name: str, tensor: bytes, window: int) -> None:
    sizes = compressed_bits(tensor, name, window=window)
    assert sizes.dtype == np.uint32
    windows = [tensor[first : first + window] for first in range(0, len(tensor), window)]
    assert sizes.tolist() == [int(compressed_bits(each, name, window=window)[0]) for each in windows]
    payload = compress(tensor, name, window=window)
    assert len(payload) == (int(sizes.sum()) + 7) // 8
    assert decompress(payload, name, len(tensor), window=window) == tensor
    if name in REFERENCES:
        assert reference_of(name).compressed_bits(tensor, window=window) == sizes.tolist()
        assert reference_of(name).compress(tensor, window=window) == payload
        assert reference_of(name).decompress(payload, len(tensor), window=window) == tensor


@pytest.mark.parametrize("name", entry_algorithms())
@given(raw=entry, data=st.data())
@settings(max_examples=60)
def test_bad_payloads_of_entries_are_refused(name: str, raw: bytes, data: st.DataObject) -> None:
    payload = compress(raw, name)
    cut = data.draw(st.integers(0, len(payload) - 1))
    for wrong in (payload[:cut], payload + b"\0", payload + b"\1"):
        assert decompressed_or_refused(wrong, name, 128) is None
    garbage = data.draw(st.binary(max_size=160))
    decoded = decompressed_or_refused(garbage, name, 128)
    assert decoded is None or compress(decoded, name) == garbage


@pytest.mark.parametrize("name", tensor_algorithms())
@given(tensor=words().filter(bool), data=st.data())
@settings(max_examples=60)
def test_bad_payloads_of_tensors_are_refused(name: str, tensor: bytes, data: st.DataObject) -> None:
    payload = compress(tensor, name, window=4096)
    cut = data.draw(st.integers(0, len(payload) - 1))
    for wrong in (payload[:cut], payload + b"\0", payload + b"\1"):
        assert decompressed_or_refused(wrong, name, len(tensor), window=4096) is None
    decompressed_or_refused(data.draw(st.binary(max_size=300)), name, len(tensor), window=4096)


@pytest.mark.parametrize("name", entry_algorithms())
def test_no_entries_have_no_sizes(name: str) -> None:
    assert compressed_bits(b"", name).shape == (0,)
    assert entry_classes(b"", name).shape == (0,)
    assert decompress(compress(b"", name), name, 0) == b""


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


@pytest.mark.parametrize("name", FROM_DENSITY)
@given(tensor=words().filter(bool))
def test_fraction_of_density_is_exact(name: str, tensor: bytes) -> None:
    values = np.frombuffer(tensor, "<u4")
    bits = int(compressed_bits(tensor, name, window=4096).sum())
    stated = find(name).fraction_of_density  # type: ignore[attr-defined]
    density = np.count_nonzero(values) / values.size
    assert stated(density) * values.size * 32 == pytest.approx(bits, rel=1e-12)
    (ratio,) = tensor_ratios(values.reshape(1, -1), ["NCHW"], [4096], [name])
    assert stated(density, False) * values.size * 32 == pytest.approx(ratio.bits - ratio.mask_bits, rel=1e-12)


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


def test_the_example_of_a_users_compressor_keeps_the_contract() -> None:
    """Run this file's tests with the example of docs/how-to/add-a-plugin.md registered."""
    root = Path(__file__).parents[2]
    tests = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__, "-k", "base-delta"]
    environment = {**os.environ, "BUDDYSIM_PLUGINS": str(root / "docs" / "examples" / "plugins" / "base_delta.py")}
    done = subprocess.run(tests, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^[1-9]\d* passed", done.stdout, re.MULTILINE), done.stdout
