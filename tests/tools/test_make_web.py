"""The page's archives are those of the releases that were chosen."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from tools import make_web
from tools.bill_of_materials import of_wheel


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


def npm_archive(folder: Path, name: str, **files: str) -> None:
    with tarfile.open(folder / f"{name.replace('@', '-')}.tgz", "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"package/{file}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def wheel(folder: Path, name: str, **files: str) -> None:
    version = name.split("-")[1]
    with zipfile.ZipFile(folder / "wheels" / name, "w") as archive:
        archive.writestr(f"x-{version}.dist-info/METADATA", f"Name: x\nVersion: {version}\nLicense-Expression: MIT\n")
        for file, text in files.items():
            archive.writestr(f"x-{version}.dist-info/{file}", text)


@pytest.fixture
def archives(stored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Archives of all parts, each with its licence but Pyodide's, which has none."""
    (stored / "wheels").mkdir()
    npm_archive(stored, make_web.PYODIDE)
    for package in (make_web.CHARTS, make_web.SOLVER):
        npm_archive(stored, package, LICENSE=f"licence of {package}")
    for name in make_web.SHA256:
        if name.endswith(".whl"):
            wheel(stored, name, **{"licenses/LICENSE": f"licence of {name}"})
    inside = {"sboms/x.cyclonedx.json": json.dumps({"components": [{"name": "a crate"}]})}
    core = next(name for name in make_web.SHA256 if name.startswith("pydantic_core"))
    wheel(stored, core, **{"licenses/LICENSE": "licence"}, **inside)
    monkeypatch.setattr(make_web, "_checked", lambda archive: archive)
    return stored


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site" / "pyodide").mkdir(parents=True)
    lock = {"info": {"python": "3.14.2", "platform": "emscripten_5_0_3"}}
    (tmp_path / "site" / "pyodide" / "pyodide-lock.json").write_text(json.dumps(lock))
    return tmp_path / "site"


def test_each_part_is_listed_and_its_licence_lies_beside_it(archives: Path, site: Path) -> None:
    make_web._add_licences(site)
    listed = json.loads((site / "bom.cdx.json").read_bytes())
    versions = {part["name"]: part["version"] for part in listed["components"]}
    expected = dict(name.split("@") for name in (make_web.PYODIDE, make_web.CHARTS, make_web.SOLVER))
    expected |= {"cpython": "3.14.2", "emscripten": "5.0.3"}
    expected |= {name.replace("-", "_"): version for name, version in (one.split("==") for one in make_web.WHEELS)}
    assert versions == expected
    assert {path.stem for path in (site / "licences").iterdir()} == {*expected, "buddysim"}
    assert all(path.read_bytes() for path in (site / "licences").iterdir())
    assert "Mozilla Public License" in (site / "licences" / "pyodide.txt").read_text()
    archive = hashlib.sha256((archives / "highs-1.15.3.tgz").read_bytes()).hexdigest()
    by_name = {part["name"]: part for part in listed["components"]}
    assert by_name["highs"]["hashes"] == [{"alg": "SHA-256", "content": archive}]
    assert by_name["pydantic_core"]["components"] == [{"name": "a crate"}]


def test_a_part_without_its_licence_is_refused(archives: Path, site: Path) -> None:
    name = next(name for name in make_web.SHA256 if name.startswith("annotated_types"))
    wheel(archives, name)
    with pytest.raises(BuddysimError, match="no licence in it"):
        make_web._add_licences(site)


def test_a_wheel_lists_what_is_in_it_and_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        about = "Name: x\nVersion: 1\nLicense-Expression: MIT\nRequires-Dist: numpy>=2\n"
        about += "Requires-Dist: lz4>=4; extra == 'l'\n"
        archive.writestr("x-1.dist-info/METADATA", about)
        archive.writestr("x/a.so", b"code")
    listed = json.loads(of_wheel(path))
    assert listed["metadata"]["component"]["purl"] == "pkg:pypi/x@1"
    code, numpy, lz4 = listed["components"]
    assert code["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"code").hexdigest()}]
    assert (numpy["purl"], numpy["scope"]) == ("pkg:pypi/numpy", "required")
    assert (lz4["name"], lz4["scope"]) == ("lz4", "optional")
    assert of_wheel(path) == of_wheel(path)
