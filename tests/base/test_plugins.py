"""Plug-ins are loaded by file, environment or entry point; anything else is refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.base.plugins import load_plugin
from buddysim.cli import main

ROOT = Path(__file__).parents[2]
Refused = Callable[..., str]
COMPRESSOR = """
\"\"\"{summary}\"\"\"
import numpy as np

OPTIONS = {{}}

def compressed_bits(data):
    return np.full(len(data) // 128, 1024, np.uint32)

def compress(data):
    return bytes(data)

def decompress(payload, nbytes):
    return bytes(payload)
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    file = tmp_path / "as_it_is.py"
    file.write_text(COMPRESSOR.format(summary="stores entries as they are"))
    return file


def buddysim(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if key != "BUDDYSIM_PLUGINS"}
    inherited["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [sys.executable, "-m", "buddysim", *arguments],
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Return what a command of this process that is refused says, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def said(*arguments: str) -> str:
        assert main(list(arguments)) == 2
        return capsys.readouterr().err

    return said


def test_a_file_named_on_the_command_line(plugin: Path, tmp_path: Path) -> None:
    listed = buddysim("list", "compressor", "--plugin", "as_it_is.py", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "as-it-is" in listed.stdout
    assert "stores entries as they are" in listed.stdout
    assert "as-it-is" not in buddysim("list", "compressor", cwd=tmp_path).stdout


def test_a_file_named_before_the_command_and_in_the_environment(
    plugin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--plugin", str(plugin), "list", "compressor"]) == 0
    assert "as-it-is" in capsys.readouterr().out
    listed = buddysim("list", "compressor", cwd=tmp_path, BUDDYSIM_PLUGINS=str(plugin))
    assert "as-it-is" in listed.stdout
    assert listed.stderr == f"buddysim: plug-ins of BUDDYSIM_PLUGINS: {plugin}\n"


def test_an_entry_point_of_an_installed_package(plugin: Path, tmp_path: Path) -> None:
    """Write an installed package: its module, and its entry points in a .dist-info folder."""
    site = tmp_path / "site"
    (site / "foreign").mkdir(parents=True)
    (site / "foreign" / "__init__.py").touch()
    plugin.rename(site / "foreign" / "as_it_is.py")
    (site / "foreign-1.0.dist-info").mkdir()
    (site / "foreign-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (site / "foreign-1.0.dist-info" / "entry_points.txt").write_text("[buddysim.plugins]\nmine = foreign.as_it_is\n")
    path = os.pathsep.join([str(ROOT), str(site)])
    listed = buddysim("list", "compressor", cwd=tmp_path, PYTHONPATH=path)
    assert "as-it-is" in listed.stdout, listed.stderr
    (site / "foreign" / "as_it_is.py").write_text("import nothing_of_that_name\n")
    broken = buddysim("list", "compressor", cwd=tmp_path, PYTHONPATH=path)
    assert broken.returncode == 2
    assert "entry point mine = foreign.as_it_is" in broken.stderr
    assert len(broken.stderr.splitlines()) == 1


SCHEME = """
from buddysim.replay.schemes.base cimport SchemeBase
from buddysim.replay.schemes.uncompressed cimport uncompressed_fill, uncompressed_writeback

cdef class Scheme(SchemeBase):
    SUMMARY = "unlimited device memory once more"

    def __cinit__(self):
        self.fill, self.writeback = uncompressed_fill, uncompressed_writeback
"""


@pytest.mark.slow
def test_an_entry_point_may_name_a_cython_file(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "foreign").mkdir(parents=True)
    (site / "foreign" / "__init__.py").touch()
    (site / "foreign" / "unlimited.pyx").write_text(SCHEME)
    (site / "foreign-1.0.dist-info").mkdir()
    (site / "foreign-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (site / "foreign-1.0.dist-info" / "entry_points.txt").write_text("[buddysim.plugins]\nmine = foreign.unlimited\n")
    path = os.pathsep.join([str(ROOT), str(site)])
    listed = buddysim("list", "replay-scheme", cwd=tmp_path, PYTHONPATH=path, XDG_CACHE_HOME=str(tmp_path))
    assert "unlimited device memory once more" in listed.stdout, listed.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OPTIONS = {}\ndef compress(data): ...\n", "a compressor without compressed_bits, decompress"),
        ("x = 1\n", "defines nothing of any kind"),
        ("x = \n", "can't be imported: SyntaxError"),
        ("1 / 0\n", "can't be imported: ZeroDivisionError"),
    ],
)
def test_a_file_that_is_no_plugin_is_refused_in_one_line(
    tmp_path: Path, text: str, expected: str, refused: Refused
) -> None:
    (tmp_path / "mine.py").write_text(text)
    said = refused("list", "--plugin", "mine.py")
    assert expected in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nosuch.py", "plug-in not found"),
        ("README.md", "expected a file ending in .py or .pyx"),
        ("a-b.py", "is not the name of a Python module"),
    ],
)
def test_a_name_that_is_no_plugin(tmp_path: Path, name: str, expected: str, refused: Refused) -> None:
    if name != "nosuch.py":
        (tmp_path / name).touch()
    assert expected in refused("list", "--plugin", name)


def test_a_refused_file_can_be_mended_and_loaded(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    with pytest.raises(BuddysimError, match="defines nothing of any kind"):
        load_plugin(file)
    file.write_text("SUMMARY = 'a table'\ndef analyse(trace, options): ...\n")
    assert load_plugin(file).SUMMARY == "a table"


def test_a_name_that_is_taken_is_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "zvc.py").write_text(COMPRESSOR.format(summary="another one"))
    said = refused("list", "compressor", "--plugin", "zvc.py")
    assert "compressor 'zvc': there is one of that name already" in said


@pytest.mark.slow
def test_a_taken_name_of_a_cython_file_is_refused_with_the_users_file(tmp_path: Path) -> None:
    (tmp_path / "unified_memory.pyx").write_text(SCHEME)
    refused = buddysim(
        "list", "replay-scheme", "--plugin", "unified_memory.pyx", cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")
    )
    assert refused.returncode == 2
    assert (
        f"{tmp_path / 'unified_memory.pyx'}: replay scheme 'unified-memory': there is one of that name already"
        in refused.stderr
    )


def test_without_a_compiler_a_cython_plugin_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.pyx").write_text("x = 1\n")
    refused = buddysim("list", "--plugin", "mine.pyx", cwd=tmp_path, PATH="/nowhere", XDG_CACHE_HOME=str(tmp_path))
    assert refused.returncode == 2
    assert "apt install gcc" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_cython_plugin_that_does_not_compile(tmp_path: Path) -> None:
    (tmp_path / "mine.pyx").write_text("cdef int f(:\n")
    refused = buddysim("list", "--plugin", "mine.pyx", cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path))
    assert refused.returncode == 2
    assert "does not compile: mine.pyx:1:" in refused.stderr.splitlines()[-1]
