"""What is packed: an sdist builds elsewhere, a wheel runs elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import buddysim

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "buddysim"
SHIPPED = {".py", ".pyx", ".pxd", ".pyi", ".h", ".toml"}

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the tests are not in a source tree")


def sources() -> set[str]:
    found = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*") if path.suffix in SHIPPED}
    return found | {"buddysim/py.typed"}


def command(*arguments: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    metadata = folder / "metadata"
    metadata.mkdir()
    command("setup.py", "-q", "egg_info", "--egg-base", str(metadata), "sdist", "-d", str(folder), folder=ROOT)
    (archive,) = folder.glob("buddysim-*.tar.gz")
    return archive


def test_every_extension_has_its_stub() -> None:
    without = [path.name for path in PACKAGE.rglob("*.pyx") if not path.with_suffix(".pyi").exists()]
    assert not without


def test_every_folder_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py*") if "__pycache__" not in path.parts}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", buddysim.__version__)


@pytest.mark.slow
def test_the_sdist_holds_every_source(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert sources() <= names
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py", "Makefile"} <= names
    assert {"traces/fdtd2048.bin", "traces/MANIFEST.toml", "tests/conftest.py"} <= names
    assert not [name for name in names if name.endswith((".c", ".so", ".html", ".pyc"))]
    assert not [name for name in names if name.startswith("traces/large/")]


@pytest.mark.slow
def test_a_wheel_from_the_sdist_runs_elsewhere(sdist: Path, tmp_path: Path) -> None:
    wheels, site = tmp_path / "wheels", tmp_path / "site"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
    command("-m", "pip", "wheel", *quiet, "--no-build-isolation", "-w", str(wheels), str(sdist), folder=tmp_path)
    (wheel,) = wheels.glob("buddysim-*.whl")
    command("-m", "pip", "install", *quiet, "--target", str(site), str(wheel), folder=tmp_path)
    for name in sources():
        assert (site / name).exists(), name
    extensions = [path.relative_to(ROOT).with_suffix("").as_posix() for path in PACKAGE.rglob("*.pyx")]
    imports = "; ".join(f"import {name.replace('/', '.')}" for name in extensions)
    program = f"import sys; sys.path.insert(0, {str(site)!r}); {imports}; import buddysim; print(buddysim.__file__)"
    assert command("-I", "-c", program, folder=tmp_path).strip().startswith(str(site))
