"""Every C and C++ source of the captures is shipped: in a wheel by setuptools' globs, in an sdist by MANIFEST.in."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
from setuptools import Distribution

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "buddysim" / "capture"
COMPILED = {".py", ".pyc", ".so", ".o"}

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the tests are not in a source tree")


def sources() -> set[str]:
    """Return the files of the captures that are not Python files, relative to the root."""
    paths = (path for path in CAPTURE.rglob("*") if path.is_file() and path.suffix not in COMPILED)
    return {path.relative_to(ROOT).as_posix() for path in paths}


def test_a_wheel_holds_every_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    distribution = Distribution()
    distribution.parse_config_files()
    command = distribution.get_command_obj("build_py")
    command.ensure_finalized()
    shipped = {os.path.normpath(f"{folder}/{name}") for _, folder, _, names in command.data_files for name in names}
    assert {Path(name).suffix for name in sources()} >= {".c", ".cpp", ".h", ".S"}
    assert sources() <= shipped


def test_an_sdist_holds_every_source() -> None:
    text = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    rules = [line.split() for line in text.splitlines() if re.match(r"recursive-include buddysim(/capture)? ", line)]
    forms = [form for _, _, *forms in rules for form in forms]
    assert not [name for name in sources() if not any(fnmatch(Path(name).name, form) for form in forms)]
