"""Files of sections: their bytes by hand, what is left of them when they are cut, damage."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zlib_ng.zlib_ng import crc32

from buddysim.base.errors import SectionFileError
from buddysim.base.output import Output
from buddysim.base.sections.section_file import SectionFile
from buddysim.base.sections.section_format import SectionFormat
from buddysim.base.sections.section_writer import SectionWriter

FORMAT = SectionFormat("a box", b"\x8fBOX\x01\r\n\x00", 2, SectionFileError, frozenset((1,)), alignment=8)
PAYLOADS = st.lists(st.binary(max_size=20), max_size=6)


class BoxWriter(SectionWriter):
    """Writes payloads as they are given."""

    def __init__(self, path: Path, *, keep_part: bool = False) -> None:
        super().__init__(FORMAT, Output(path, keep_part=keep_part), owned=True, flush_each=keep_part)

    def add(self, payload: bytes) -> None:
        self._section(b"DATA", payload)


def written(path: Path, payloads: list[bytes]) -> bytes:
    with BoxWriter(path) as writer:
        for payload in payloads:
            writer.add(payload)
    return path.read_bytes()


def payloads_of(path: Path) -> list[bytes]:
    file = SectionFile(path, FORMAT, incomplete=True)
    return [file.payload(section, "section") for section in file.sections()]


def test_bytes_by_hand(tmp_path: Path) -> None:
    head = struct.pack("<8sII", b"\x8fBOX\x01\r\n\x00", 2, 0)
    section = struct.pack("<4sIQI", b"DATA", 0, 3, crc32(b"abc"))
    by_hand = (
        head + struct.pack("<II", crc32(head), 0) + section + struct.pack("<I", crc32(section)) + b"abc" + bytes(5)
    )
    assert written(tmp_path / "box", [b"abc"]) == by_hand


@given(PAYLOADS, st.data())
def test_of_a_cut_file_the_complete_sections_are_left(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut") / "box"
    content = written(path, payloads)
    assert payloads_of(path) == payloads
    length = data.draw(st.integers(24, len(content)))
    ends, end = [], 24
    for payload in payloads:
        ends.append(end + 24 + len(payload))
        end = ends[-1] + -len(payload) % 8
    path.write_bytes(content[:length])
    assert payloads_of(path) == payloads[: sum(end <= length for end in ends)]


@given(PAYLOADS.filter(bool), st.data())
def test_a_changed_byte_is_found(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("changed") / "box"
    content = bytearray(written(path, payloads))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(SectionFileError):
        payloads_of(path)


@pytest.mark.parametrize(("keep_part", "left"), [(False, []), (True, ["box.incomplete"])])
def test_an_interrupted_writer(tmp_path: Path, keep_part: bool, left: list[str]) -> None:
    writer = BoxWriter(tmp_path / "box", keep_part=keep_part)
    writer.add(b"abc")
    writer.abort()
    assert [path.name for path in tmp_path.iterdir()] == left
    assert not left or payloads_of(tmp_path / left[0]) == [b"abc"]
    with pytest.raises(ValueError, match="the box is closed"):
        writer.add(b"abc")


def test_an_old_version_is_read_and_a_newer_one_is_not(tmp_path: Path) -> None:
    for version, readable in ((1, True), (3, False)):
        head = struct.pack("<8sII", FORMAT.magic, version, 0)
        (tmp_path / "box").write_bytes(head + struct.pack("<II", crc32(head), 0))
        if readable:
            assert payloads_of(tmp_path / "box") == []
        else:
            with pytest.raises(SectionFileError, match=r"format version 3\.0, this program reads up to 2\.0"):
                payloads_of(tmp_path / "box")
