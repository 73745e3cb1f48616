"""The reader of plain pickles: equal to pickle's for what is plain, and nothing else runs, hangs or fills memory."""

from __future__ import annotations

import pickle
import pickletools
import struct
import time
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.base.plain_pickle import plain_pickle, read_plain_pickle

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**200), 2**200), st.floats(allow_nan=False), st.text(max_size=300)
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.lists(inner, max_size=5).map(tuple),
        st.dictionaries(st.text(max_size=5), inner, max_size=5),
    ),
    max_leaves=30,
)
OPCODES = """MARK STOP POP POP_MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 BINFLOAT
BINUNICODE SHORT_BINUNICODE BINUNICODE8 EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT
DICT SETITEM SETITEMS BINGET LONG_BINGET BINPUT LONG_BINPUT MEMOIZE PROTO FRAME"""
LIMIT = 0.5
"""Seconds that a small file may take at most."""


def check_as_pickle_reads_it(content: object, protocol: int) -> None:
    read = plain_pickle(pickle.dumps(content, protocol))
    assert read == content
    assert repr(read) == repr(content)


@settings(max_examples=20, deadline=None)
@given(content=PLAIN, protocol=st.integers(1, 5))
def test_plain_content_is_read_as_pickle_reads_it(content: object, protocol: int) -> None:
    check_as_pickle_reads_it(content, protocol)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(content=PLAIN, protocol=st.integers(1, 5))
def test_much_plain_content_is_read_as_pickle_reads_it(content: object, protocol: int) -> None:
    check_as_pickle_reads_it(content, protocol)


def test_more_than_256_shared_objects() -> None:
    content = [{"a key": number, "shared": [str(number)] * 3} for number in range(2000)]
    assert plain_pickle(pickle.dumps(content)) == content
    assert plain_pickle(pickle.dumps(content, 2)) == content


@pytest.mark.parametrize(
    "content",
    [
        OrderedDict(a=1),
        b"bytes",
        bytearray(3),
        {1, 2},
        frozenset((1,)),
        print,
        Path,
        ValueError("x"),
        1j,
        {3: "a key that is a number"},
        {("a",): "a key that is a tuple"},
        1 << 600,
    ],
)
@pytest.mark.parametrize("protocol", range(6))
def test_anything_else_is_refused(content: object, protocol: int) -> None:
    with pytest.raises(ValueError, match=r"expected|key|byte"):
        plain_pickle(pickle.dumps(content, protocol))


class Evil:
    """What a pickle can run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_runs(protocol: int, tmp_path: Path) -> None:
    target = tmp_path / "touched"
    data = pickle.dumps([1, Evil(target)], protocol)
    with pytest.raises(ValueError, match="expected plain lists"):
        plain_pickle(data)
    assert not target.exists()
    pickle.loads(data)
    assert target.exists()


def test_every_opcode_that_makes_something_else_is_refused() -> None:
    """The opcodes of the pickle module that are read are these."""
    read = set(OPCODES.split())
    for opcode in pickletools.opcodes:
        if opcode.name in read:
            continue
        with pytest.raises(ValueError, match=opcode.name):
            plain_pickle(b"]" * 3 + opcode.code.encode("latin-1") + bytes(20))


def bomb_of_references() -> bytes:
    """A list of lists of lists, each a thousand times the one before: 10^30 elements in a few thousand bytes."""
    data = b"(]\x94" + b"K\x01a" * 10
    for level in range(10):
        data += b"]\x94(" + bytes((0x68, level)) * 255 + b"e"
    return data + b"t."


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"]",
        b"((((.",
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"N.",
        b"\x8d" + struct.pack("<Q", 1 << 62) + b"x.",  # a text of 2^62 bytes
        b"X" + struct.pack("<I", (1 << 32) - 1) + b"x.",
        b"\x8b" + struct.pack("<I", 1 << 31) + b"x.",  # an integer of 2^31 bytes
        b"\x8b" + struct.pack("<I", 200) + b"\xff" * 200 + b".",
        b"I" + b"9" * 5000 + b"\n.",
        b"(" * 5000 + b".",
        b"h\x05.",
        b"j" + struct.pack("<I", (1 << 32) - 1) + b".",
        b"N\x85\x86.",
        b"\x8c\x02\xff\xfe.",
        b"Nq",
        b"}(X\x01\x00\x00\x00au.",
        b"]K\x01u.",
    ],
)
def test_broken_data_get_one_line_at_once(data: bytes) -> None:
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"^[^\n]*$"):
        plain_pickle(data)
    assert time.perf_counter() - start < LIMIT


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"Nr" + struct.pack("<I", (1 << 32) - 1) + b".", id="memo index of 2^32"),
        pytest.param(bomb_of_references(), id="references"),
        pytest.param(b"]" + b"\x85" * 100_000 + b".", id="depth"),
        pytest.param(b"]q\x00h\x00a.", id="a list within itself"),
        pytest.param(b"]" + b"K\x01a" * 50_000 + b".", id="length"),
    ],
)
def test_small_files_take_little_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        plain_pickle(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * len(data) + (1 << 20)


@settings(max_examples=150, deadline=None)
@given(content=PLAIN, data=st.data())
def test_damaged_pickles_give_content_or_one_line(content: object, data: st.DataObject) -> None:
    raw = bytearray(pickle.dumps(content, data.draw(st.integers(0, 5))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        plain_pickle(bytes(raw))
    except ValueError as error:
        assert "\n" not in str(error)


@settings(max_examples=150, deadline=None)
@given(raw=st.binary(max_size=200))
def test_random_bytes_give_content_or_one_line(raw: bytes) -> None:
    try:
        plain_pickle(raw)
    except ValueError as error:
        assert "\n" not in str(error)


def test_a_file_that_is_too_large_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "one.pickle"
    path.write_bytes(pickle.dumps("x" * 1000))
    assert read_plain_pickle(path, "memory snapshot", 2000) == "x" * 1000
    with pytest.raises(BuddysimError):
        read_plain_pickle(path, "memory snapshot", 500)
    with pytest.raises(BuddysimError):
        read_plain_pickle(tmp_path / "none.pickle", "memory snapshot", 500)
