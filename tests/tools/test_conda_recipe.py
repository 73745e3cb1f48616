"""The recipe of a release: what pyproject.toml requires, by conda-forge's names, and the hash of the archive."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.conda_recipe import ROOT, recipe

yaml = pytest.importorskip("yaml")


def test_the_recipe_has_the_projects_requirements(tmp_path: Path) -> None:
    archive = tmp_path / "buddysim-1.2.3.tar.gz"
    archive.write_bytes(b"an archive")
    made = yaml.safe_load(recipe(archive))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert made["context"]["version"] == "1.2.3"
    assert made["source"]["sha256"] == hashlib.sha256(b"an archive").hexdigest()
    assert len(made["requirements"]["run"]) == 1 + len(project["project"]["dependencies"])
    assert {"numpy >=2", "matplotlib-base >=3.9", "python-zlib-ng >=0.5"} <= {*made["requirements"]["run"]}
    assert "cython >=3.3,<4" in made["requirements"]["host"]
    assert made["build"]["python"]["entry_points"] == ["buddysim = buddysim.__main__:run"]


def test_another_file_is_refused(tmp_path: Path) -> None:
    for arguments in ([], [str(tmp_path / "x.whl")], [str(tmp_path / "buddysim-1.2.3.tar.gz")]):
        command = [sys.executable, "-m", "tools.conda_recipe", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
