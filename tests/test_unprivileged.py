"""Commands that may write to a folder of their user alone: not to the installation, the home folder or a store."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from buddysim.cli import main
from tests.trace.builders import write_small

PACKAGE = Path(__file__).parents[1] / "buddysim"
#: Users that own nothing: one of every system, and one that no list of users has, as in a container. They may read
#: everything, as the Python of the tests may be in a folder of root's.
USERS = (
    {"nobody": pwd.getpwnam("nobody").pw_uid, "without-name": 1_234_567} if os.getuid() == 0 else {"own": os.getuid()}
)
READS_ALL = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
#: With {} for the user's folder, TRACE for a trace and STORE for a store of another user; and what the end must be.
COMMANDS = (
    (("run", "TRACE", "--scheme", "ideal,buddy", "--sensitivity", "none", "--json", "{}/r.json"), 0),
    pytest.param(
        ("train", "alexnet", "--batch", "4", "--scheme", "baseline-p", "--timeline", "{}/x.svg"),
        0,
        marks=pytest.mark.slow,
    ),
    (("results", "--store", "STORE"), 0),
    pytest.param(("sweep", "TRACE", "--store", "STORE", "--workers", "1"), 0, marks=pytest.mark.slow),  # it is there
    (("sweep", "TRACE", "--set", "seed=7", "--store", "STORE", "--workers", "1"), 2),
    (("train", "alexnet", "--batch", "4", "--scheme", "baseline-p", "--json", "STORE/r.json"), 2),
)


def run_as(user: int, words: Sequence[str], folder: Path, installed: Path) -> subprocess.CompletedProcess[str]:
    """Run Python as a user that may write to `folder`; a user without a name has no home folder either."""
    os.chown(folder, user, -1)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed / "site")}
    if user != USERS.get("without-name"):
        environment["HOME"] = str(installed / "home")
    change = ["setpriv", f"--reuid={user}", "--regid=65534", "--clear-groups", *READS_ALL] if os.getuid() == 0 else []
    return subprocess.run(
        [*change, sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


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


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
@pytest.mark.parametrize(("command", "code"), COMMANDS, ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_a_user_without_rights_gets_an_answer_or_one_line(
    command: tuple[str, ...], code: int, user: int, installed: Path, tmp_path: Path
) -> None:
    named = {"TRACE": installed / "t.bin", "STORE": installed / "store", "{}": tmp_path}
    words = [command[0]]
    for word in command[1:]:
        for mark, path in named.items():
            word = word.replace(mark, str(path))
        words.append(word)
    done = run_as(user, ["-m", "buddysim", *words], tmp_path, installed)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if "error: " in line]) == (code == 2)


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
def test_the_installation_that_is_tested_is_read_only(user: int, installed: Path, tmp_path: Path) -> None:
    write = "import buddysim, os; open(os.path.dirname(buddysim.__file__) + '/x', 'w')"
    assert "PermissionError" in run_as(user, ["-c", write], tmp_path, installed).stderr
