"""The page's archives are those of the releases that were chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from tools import make_web


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of archives that were brought by an earlier run."""
    monkeypatch.setattr(make_web, "CACHE", tmp_path)
    return tmp_path


def test_every_archive_has_its_hash() -> None:
    names = {f"{name.replace('@', '-')}.tgz" for name in (make_web.PYODIDE, make_web.CHARTS, make_web.SOLVER)}
    names |= {f"{wheel.replace('-', '_').replace('==', '-')}-" for wheel in make_web.WHEELS}
    assert {next(name for name in names if archive.startswith(name)) for archive in make_web.SHA256} == names


def test_another_content_is_refused_and_removed(stored: Path) -> None:
    archive = stored / f"{make_web.SOLVER.replace('@', '-')}.tgz"
    archive.write_bytes(b"another content")
    with pytest.raises(BuddysimError, match=r"highs-1.15.3.tgz: removed, as its content"):
        make_web._npm_package(make_web.SOLVER)
    assert not archive.exists()


def test_another_wheel_is_refused(stored: Path) -> None:
    (stored / "wheels").mkdir()
    for name in make_web.SHA256:
        if name.endswith(".whl"):
            (stored / "wheels" / name).write_bytes(b"another content")
    with pytest.raises(BuddysimError, match="removed, as its content"):
        make_web._wheels()
