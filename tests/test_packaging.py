"""What is packed: an sdist builds elsewhere, a wheel runs elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
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


def beside() -> set[str]:
    """What stands beside the package and is shipped: everything but what Python and compilers leave behind."""
    found = {path for name in ("tools", "plots") for path in (ROOT / name).rglob("*") if path.is_file()}
    left = {path for path in found if "__pycache__" in path.parts or path.suffix in (".so", ".o")}
    return {path.relative_to(ROOT).as_posix() for path in found - left}


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
    assert beside() <= names
    left = [name for name in names if name.endswith((".so", ".html", ".pyc"))]
    assert not left + [name for name in names if name.startswith("buddysim/") and name.endswith(".c")]
    assert not [name for name in names if name.startswith("traces/large/")]


@pytest.fixture(scope="module")
def installed(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel of the sdist; dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("installed")
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
    command("-m", "pip", "wheel", *quiet, "--no-build-isolation", "-w", str(folder), str(sdist), folder=folder)
    (wheel,) = folder.glob("buddysim-*.whl")
    command("-m", "venv", "--without-pip", str(folder / "venv"), folder=folder)
    command("-m", "pip", "--python", str(folder / "venv"), "install", *quiet, str(wheel), folder=folder)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "venv"


def isolated(installed: Path, *arguments: str, folder: Path) -> str:
    """What the installed Python prints, away from the clone."""
    python = str(installed / "bin" / "python")
    done = subprocess.run([python, "-I", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_a_wheel_from_the_sdist_runs_elsewhere(installed: Path, tmp_path: Path) -> None:
    (site,) = (installed / "lib").glob("python*/site-packages")
    for name in sources():
        assert (site / name).exists(), name
    extensions = [path.relative_to(ROOT).with_suffix("").as_posix() for path in PACKAGE.rglob("*.pyx")]
    imports = "; ".join(f"import {name.replace('/', '.')}" for name in extensions)
    program = f"{imports}; import buddysim; print(buddysim.__file__)"
    assert isolated(installed, "-c", program, folder=tmp_path).strip().startswith(str(site))


@pytest.mark.slow
def test_the_installed_wheel_has_tools_and_plots(installed: Path, tmp_path: Path) -> None:
    for name in beside():
        assert (installed / "share" / "buddysim" / name).exists(), name
    program = "from buddysim import beside; print(*map(beside.folder, ('tools', 'plots')), sep='\\n')"
    share = installed / "share" / "buddysim"
    found = isolated(installed, "-c", program, folder=tmp_path).split()
    assert [Path(name).resolve() for name in found] == [share / "tools", share / "plots"]
    assert "snapshots" in isolated(installed, "-m", "buddysim", "capture", "--help", folder=tmp_path)
    if shutil.which("gcc"):
        capture = ("capture", "memory", "-o", str(tmp_path / "true.bin"), "--", "true")
        isolated(installed, "-m", "buddysim", *capture, folder=tmp_path)
        isolated(installed, "-m", "buddysim", "verify", str(tmp_path / "true.bin"), folder=tmp_path)
