"""Archives are unpacked only inside their temporary folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from tools.archive import folder_with


def packed(path: Path, *members: tuple[str, bytes, str]) -> Path:
    """Write an archive of files, each with its name, type and link target."""
    with tarfile.open(path, "w:xz") as archive:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            content = b"text" if kind == tarfile.REGTYPE else b""
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_folder_is_used_directly(tmp_path: Path) -> None:
    with folder_with(tmp_path, "meta.jsonl") as folder:
        assert folder == tmp_path


def test_an_archive_is_unpacked_and_removed(tmp_path: Path) -> None:
    path = packed(
        tmp_path / "a.tar.xz",
        ("capture", tarfile.DIRTYPE, ""),
        ("capture/meta.jsonl", tarfile.REGTYPE, ""),
        ("capture/deep/er.txt", tarfile.REGTYPE, ""),
    )
    with folder_with(path, "meta.jsonl") as folder:
        assert (folder / "meta.jsonl").read_bytes() == b"text"
        assert (folder / "deep" / "er.txt").exists()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        ("../outside", tarfile.REGTYPE, ""),
        ("capture/../../outside", tarfile.REGTYPE, ""),
        ("/outside", tarfile.REGTYPE, ""),
        ("link", tarfile.SYMTYPE, "/etc/passwd"),
        ("link", tarfile.LNKTYPE, "meta.jsonl"),
        ("pipe", tarfile.FIFOTYPE, ""),
        ("device", tarfile.CHRTYPE, ""),
    ],
)
def test_members_that_could_escape_the_folder_are_refused(tmp_path: Path, name: str, kind: bytes, target: str) -> None:
    path = packed(tmp_path / "a.tar.xz", ("meta.jsonl", tarfile.REGTYPE, ""), (name, kind, target))
    with pytest.raises(BuddysimError, match="no plain file inside the archive"), folder_with(path, "meta.jsonl"):
        pass
    assert not (tmp_path.parent / "outside").exists()


def test_non_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.xz"
    for content in (b"", b"no archive", packed(tmp_path / "b.tar.xz", ("x", tarfile.REGTYPE, "")).read_bytes()[:60]):
        path.write_bytes(content)
        with pytest.raises(BuddysimError, match=r"a\.tar\.xz: "), folder_with(path, "meta.jsonl"):
            pass
