"""The cache: a command goes on without it, and code of another user in it is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from buddysim.base import cache
from buddysim.base.compiled import cached_file
from buddysim.base.errors import BuddysimError

MADE = "made"


def make(path: Path) -> None:
    path.write_text(MADE)


def test_without_a_cache_a_file_is_made_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cached_file("x", ".so", [b"key"], make).read_text() == MADE
    assert cached_file("x", ".so", [b"other"], make).read_text() == MADE
    (line,) = capsys.readouterr().err.splitlines()
    assert "it is only a cache: this command goes on without it" in line


def test_what_others_may_write_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = cached_file("x", ".so", [b"key"], make)
    file.write_text("changed")
    assert cached_file("x", ".so", [b"key"], make).read_text() == "changed"
    file.chmod(0o666)
    file.parent.chmod(0o777)
    assert cached_file("x", ".so", [b"key"], make).read_text() == MADE
    assert not (file.stat().st_mode | file.parent.stat().st_mode) & 0o022


@pytest.mark.parametrize("owned", ["file", "folder"])
def test_what_another_user_owns_is_refused(owned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = cached_file("x", ".so", [b"key"], make)
    if os.getuid():
        pytest.skip("only root can give a file away")
    os.chown(file if owned == "file" else file.parent, 12345, -1)
    with pytest.raises(BuddysimError, match="belongs to another user"):
        cached_file("x", ".so", [b"key"], make)
    assert cache.cache_root() == tmp_path / "buddysim"
