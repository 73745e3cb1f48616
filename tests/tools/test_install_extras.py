"""`tools/install_extras.sh` installs missing packages, and names those that it can't install."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "install_extras.sh"


def run(tmp_path: Path, **commands: str) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine whose commands are these shell scripts."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in commands.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "LOG": str(tmp_path / "log")}
    command = ["bash", str(SCRIPT), str(folder / "python")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


INSTALLED = 'test -e "$LOG" && grep -q "install.* ${3:-none}" "$LOG" && echo "ii " || exit 1'


def test_everything_is_there(tmp_path: Path) -> None:
    done = run(tmp_path, dpkg_query="echo 'ii '", apt_get="exit 9", python="exit 0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_what_is_missing_is_installed(tmp_path: Path) -> None:
    python = 'case "$*" in *pip*) echo "$@" >> "$LOG";; *) exit 1;; esac'
    done = run(tmp_path, dpkg_query=INSTALLED, apt_get='echo "$@" >> "$LOG"', python=python)
    log = (tmp_path / "log").read_text()
    assert done.returncode == 0, done.stderr
    assert " gfortran " in log
    assert " oclgrind " in log
    assert "torch==2.13.0+cpu" in log


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_what_cannot_be_installed_is_named(tmp_path: Path) -> None:
    apt = 'case "$*" in *gfortran*) exit 100;; esac; echo "$@" >> "$LOG"'
    done = run(tmp_path, dpkg_query=INSTALLED, apt_get=apt, python="exit 1")
    assert done.returncode == 1
    assert "could not be installed: gfortran\n" in done.stderr
    assert "could not be installed: torch==2.13.0+cpu\n" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root installs packages")
def test_without_root_the_packages_are_named(tmp_path: Path) -> None:
    done = run(tmp_path, dpkg_query="exit 1", apt_get="exit 9", sudo="exit 1", python="exit 0")
    assert done.returncode == 1
    assert "only root can install it: apt install gcc" in done.stderr
