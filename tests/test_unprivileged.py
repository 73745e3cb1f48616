"""Commands that may write to a folder of their user alone: not to the installation, the home folder or a store."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from buddysim.cli import main
from tests.trace.builders import write_small

PACKAGE = Path(__file__).parents[1] / "buddysim"
#: Of linux/prctl.h and linux/capability.h: without these two, permissions hold for root, too.
DROP_CAPABILITY, PERMISSIONS = 24, (1, 2)
#: With {} for the user's folder, TRACE for a trace and STORE for a store of another user; and what the end must be.
COMMANDS = (
    (("run", "TRACE", "--scheme", "ideal,buddy", "--sensitivity", "none", "--json", "{}/r.json"), 0),
    (("train", "alexnet", "--batch", "4", "--scheme", "baseline-p", "--timeline", "{}/x.svg"), 0),
    (("results", "--store", "STORE"), 0),
    (("sweep", "TRACE", "--store", "STORE", "--workers", "1"), 0),  # its result is there
    (("sweep", "TRACE", "--set", "seed=7", "--store", "STORE", "--workers", "1"), 2),
    (("train", "alexnet", "--batch", "4", "--scheme", "baseline-p", "--json", "STORE/r.json"), 2),
)


def without_rights() -> None:
    for capability in PERMISSIONS:
        ctypes.CDLL(None).prctl(DROP_CAPABILITY, capability, 0, 0, 0)


def make_read_only(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation, a trace and a store that nobody can write to."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, folder / "site" / "buddysim", ignore=shutil.ignore_patterns("*.cpp", "*.c"))
    trace = write_small(folder / "t.bin", 4)
    assert main(["sweep", str(trace), "--store", str(folder / "store"), "--workers", "1"]) == 0
    (folder / "home").mkdir()
    make_read_only(folder)
    return folder


@pytest.mark.parametrize(("command", "code"), COMMANDS, ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_a_user_without_rights_gets_an_answer_or_one_line(
    command: tuple[str, ...], code: int, installed: Path, tmp_path: Path
) -> None:
    named = {"TRACE": installed / "t.bin", "STORE": installed / "store", "{}": tmp_path}
    words = [command[0]]
    for word in command[1:]:
        for mark, path in named.items():
            word = word.replace(mark, str(path))
        words.append(word)
    environment = {"HOME": str(installed / "home"), "PATH": os.environ["PATH"], "PYTHONPATH": str(installed / "site")}
    done = subprocess.run(
        [sys.executable, "-m", "buddysim", *words], preexec_fn=without_rights, cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if "error: " in line]) == (code == 2)


def test_the_installation_that_is_tested_is_read_only(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import buddysim, os; open(os.path.dirname(buddysim.__file__) + '/x', 'w')"],
        preexec_fn=without_rights, cwd=tmp_path, env={"PYTHONPATH": str(installed / "site")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "PermissionError" in done.stderr
