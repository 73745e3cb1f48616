"""Packages: an sdist builds elsewhere, and a wheel runs elsewhere."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import buddysim
from buddysim.base.build_flags import SHARED_MODULE
from buddysim.base.kinds import HOMES, registry
from tests.capture.opencl.running import needs_opencl

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "buddysim"
SHIPPED = {".py", ".pyx", ".pxd", ".pyi", ".h", ".toml", ".csv", ".maps", ".c", ".cpp", ".S", ".cl"}

TRAINING = """
import torch

layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    torch.relu(layer(torch.rand(32, 64))).sum().backward()
    optimizer.step()
"""

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the tests are not in a source tree")


def sources() -> set[str]:
    package_files = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*") if path.suffix in SHIPPED}
    return package_files | {"buddysim/py.typed"}


def scripts() -> set[str]:
    """Return the folders that an sdist has in addition to the package, all without generated files."""
    files = {path for name in ("tools", "plots", "docs") for path in (ROOT / name).rglob("*") if path.is_file()}
    generated = {path for path in files if "__pycache__" in path.parts or path.suffix in (".so", ".o", ".c")}
    return {path.relative_to(ROOT).as_posix() for path in files - generated}


def command(*arguments: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    metadata = folder / "metadata"
    metadata.mkdir()
    # Setuptools lays the files out in the checkout: two of the tests' workers must not do so at once.
    with (tmp_path_factory.getbasetemp().parent / "sdist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command("setup.py", "-q", "egg_info", "--egg-base", str(metadata), "sdist", "-d", str(folder), folder=ROOT)
    (archive,) = folder.glob("buddysim-*.tar.gz")
    return archive


def test_extensions_import_the_shared_module() -> None:
    """No extension contains a copy of Cython's own utility code."""
    importlib.import_module("buddysim.compress.bpc")
    assert SHARED_MODULE in sys.modules


def test_the_requirements_name_one_cython() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    (needed,) = {
        requirement
        for requirement in (*project["build-system"]["requires"], *extras["plugins"], *extras["dev"])
        if requirement.startswith("Cython>")
    }
    assert f"'{needed}'" in (ROOT / "Makefile").read_text()


def test_every_folder_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py*") if "__pycache__" not in path.parts}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", buddysim.__version__)


def test_a_wheel_has_the_traces_that_documents_use() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    used = {name for page in pages for name in re.findall(r"\btraces/([\w-]+\.bin)", page.read_text(encoding="utf-8"))}
    (shipped,) = re.findall(r"^SHIPPED = \((.*?)^\)", (ROOT / "setup.py").read_text(), re.MULTILINE | re.DOTALL)
    assert {*re.findall(r'"([\w-]+\.bin)"', shipped)} == used


@pytest.mark.slow
def test_an_image_has_the_sources_that_a_build_needs(tmp_path: Path) -> None:
    """What .dockerignore lets through is laid out as a package; extensions are not compiled here."""
    excluded, *allowed = (ROOT / ".dockerignore").read_text().split()
    assert excluded == "*"
    for name in (line.removeprefix("!") for line in allowed if line.startswith("!")):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "large"))
        else:
            shutil.copyfile(source, tmp_path / name)
    command("setup.py", "-q", "build_py", "--build-lib", "laid-out", folder=tmp_path)
    assert (tmp_path / "laid-out" / "buddysim" / "trace" / "shipped" / "fdtd2048.bin").is_file()
    image = (ROOT / "Dockerfile").read_text()
    versions = re.findall(r"^FROM python:(3\.\d+)-slim", image, re.MULTILINE)
    assert len(versions) == 2
    assert f"Python :: {versions[0]}" in (ROOT / "pyproject.toml").read_text()
    assert versions[0] == versions[1]


@pytest.mark.slow
def test_the_sdist_holds_every_source(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert sources() <= names
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py", "Makefile"} <= names
    assert {"traces/fdtd2048.bin", "traces/MANIFEST.toml", "tests/conftest.py"} <= names
    assert scripts() <= names
    left = [name for name in names if name.endswith((".so", ".html", ".pyc"))]
    made = [name for name in names if name.startswith("buddysim/") and name.endswith(".c")]
    assert not left + [name for name in made if not name.startswith("buddysim/capture/")]
    assert not [name for name in names if name.startswith("traces/large/")]


@pytest.mark.slow
@pytest.mark.long
def test_two_builds_give_the_same_bytes(sdist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees with other names and dates of files; three of their modules are compiled."""
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    builds = []
    for name, date in (("one", 1_000_000_000), ("another", 1_500_000_000)):
        subprocess.run(["tar", "-xf", sdist, "--one-top-level=" + name], cwd=tmp_path, check=True)
        (tree,) = (tmp_path / name).iterdir()
        for path in (tree / "buddysim").rglob("*.pyx"):
            if path.stem not in ("fvc", "rle"):
                path.unlink()
        for path in tree.rglob("*"):
            os.utime(path, (date, date))
        output = tmp_path / f"{name}-dist"
        command("-m", "build", "--no-isolation", "--outdir", str(output), folder=tree)
        builds.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in output.iterdir()})
        (wheel,) = output.glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            assert sum(name.endswith(".so") for name in packed.namelist()) == 3
    assert len(builds[0]) == 2
    assert builds[0] == builds[1]


@pytest.fixture(scope="module")
def installed(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a virtual environment with the wheel of the sdist, and this environment's dependencies."""
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
    """Return the output of the installed Python, away from the clone."""
    python = str(installed / "bin" / "python")
    done = subprocess.run([python, "-I", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_a_wheel_from_the_sdist_runs_elsewhere(installed: Path, tmp_path: Path) -> None:
    (site,) = (installed / "lib").glob("python*/site-packages")
    for name in sources():
        assert (site / name).exists(), name
    files = [path for path in (site / "buddysim").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files if path.suffix != ".pyc") < 21e6  # byte code depends on Python
    assert sum(path.stat().st_size for path in files) < 30 * 2**20
    extensions = [path.relative_to(ROOT).with_suffix("").as_posix() for path in PACKAGE.rglob("*.pyx")]
    imports = "; ".join(f"import {name.replace('/', '.')}" for name in extensions)
    program = f"{imports}; import buddysim; print(buddysim.__file__)"
    assert isolated(installed, "-c", program, folder=tmp_path).strip().startswith(str(site))


@pytest.fixture
def away(installed: Path, tmp_path: Path) -> Callable[..., str]:
    """Run the installed command in an empty folder, with a home of its own."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "empty").mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}

    def run(*arguments: str) -> str:
        command = [str(installed / "bin" / "python"), "-I", "-m", "buddysim", *arguments]
        folder = tmp_path / "empty"
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    return run


@pytest.mark.slow
def test_an_installed_wheel_runs_trains_plots_and_lists(away: Callable[..., str]) -> None:
    away("generate", "stride", "--set", "footprint=1MiB", "-o", "stride.bin")
    away("verify", "stride.bin")
    assert "buddy" in away(
        "run",
        "stride.bin",
        "--scheme",
        "ideal,buddy,unified-memory,pinned-host,bandwidth-compression",
        "--json",
        "stride.json",
    )
    away("plot", "overview", "stride.json", "-o", "overview.png")
    assert "vdnn-dyn" in away("train", "alexnet", "--batch", "8", "--scheme", "vdnn-dyn,cdma-zv")
    away("plot", "vdnn-fig4", "-o", "fig4.png")
    listed = away("list")
    for _, names in ((kind, registry(kind).names()) for kind in HOMES):
        assert all(name in listed for name in names)
    assert "p100-nvlink2" in away("machines")


@pytest.mark.slow
def test_an_installed_wheel_brings_a_real_trace(away: Callable[..., str]) -> None:
    path = away("traces", "kv-cache", "--path").strip()
    assert "ok" in away("verify", path)
    assert "compression ratio" in away("run", path, "--no-sensitivity", "--require-data-values")
    assert "speedup over ideal" in away("run", "fdtd2048")
    assert "not here" in away("traces")


def test_a_folder_of_the_packages_name_above_the_clone_shadows_nothing(tmp_path: Path) -> None:
    """An editable install puts the clone's folder on the path."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert settings["package-dir"] == {"": "."}  # what makes the editable install a path instead of a finder
    (tmp_path / "buddysim").mkdir()
    (tmp_path / "script.py").write_text("import buddysim; print(buddysim.Machine.load('p100-nvlink2').name)")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "p100-nvlink2\n", done.stderr


@pytest.mark.slow
def test_an_installed_wheel_captures(away: Callable[..., str]) -> None:
    away("capture", "memory", "-o", "true.bin", "--", "true")
    away("verify", "true.bin")


@pytest.mark.slow
def test_an_installed_wheel_captures_a_training(away: Callable[..., str], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch isn't installed: tools/install_extras.sh")
    (tmp_path / "empty" / "train.py").write_text(TRAINING)
    away("capture", "torch", "-o", "trained.bin", "train.py")
    away("verify", "trained.bin")


@pytest.mark.slow
def test_an_installed_wheel_captures_opencl(away: Callable[..., str], tmp_path: Path) -> None:
    needs_opencl()
    pytest.importorskip("pyopencl", reason="PyOpenCL isn't installed: tools/install_extras.sh")
    shutil.copyfile(ROOT / "docs" / "examples" / "wave_opencl.py", tmp_path / "empty" / "wave.py")
    away("capture", "opencl", "-o", "wave.bin", "--", sys.executable, "wave.py")
    away("verify", "wave.bin")
