"""A plug-in's fault is one line with its file, whatever the command that runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.base.boundary import EXIT_UNEXPECTED
from buddysim.cli import main
from buddysim.synthetic import make_trace

#: By kind: a plug-in whose function ends with FAULT, and a command that calls it.
FAULTS = {
    "compressor": (
        "OPTIONS = {}\ndef compressed_bits(data):\n    FAULT\ncompress = decompress = compressed_bits",
        "train alexnet-cifar10 --batch 4 --scheme cdma --compressor faulty",
    ),
    "training scheme": (
        "SUMMARY = {'faulty': 'a scheme'}\ndef plan(*arguments):\n    FAULT",
        "train alexnet-cifar10 --batch 4 --scheme faulty",
    ),
    "network": ("def build():\n    FAULT\nNETWORKS = {'faulty': build}", "train faulty --batch 4 --scheme oracle"),
    "synthetic workload": (
        "from buddysim.synthetic import Workload\nclass Faulty(Workload):\n    'a trace'\n    name = 'faulty'\n"
        "    def provenance(self):\n        FAULT",
        "generate faulty -o x.bin",
    ),
    "analysis": ("SUMMARY = 'a table'\ndef analyse(trace, options):\n    FAULT", "analyse TRACE --only faulty"),
    "figure": ("TITLE = 'a figure'\ndef data(source): return 1\ndef draw(numbers):\n    FAULT", "plot faulty -o x.png"),
    "importer": (
        "SUMMARY = 'traces'\ndef add_arguments(parser): pass\ndef import_trace(*arguments):\n    FAULT",
        "import faulty -o x.bin",
    ),
    "command": (
        "NAME, TASK, HELP = 'faulty', 'a task', 'a command'\ndef add_arguments(parser): pass\n"
        "def run(args):\n    FAULT",
        "faulty",
    ),
}


def ended(kind: str, fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the command of a kind, in a folder."""
    text, command = FAULTS[kind]
    (folder / "faulty.py").write_text(text.replace("FAULT", fault))
    monkeypatch.chdir(folder)
    if "TRACE" in command:
        make_trace("random", "t.bin", {"footprint": "64 KiB", "operations": "4", "sizes": "32 B:1"})
    return main([*command.replace("TRACE", "t.bin").split(), "--plugin", "faulty.py"])


@pytest.mark.unexpected
@pytest.mark.parametrize("kind", FAULTS)
def test_an_error_names_the_plugin(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(kind, "raise ZeroDivisionError('mine')", tmp_path, monkeypatch) == EXIT_UNEXPECTED
    (line,) = capsys.readouterr().err.splitlines()
    start = f"buddysim: unexpected: plug-in {tmp_path / 'faulty.py'}: ZeroDivisionError: mine; report saved in "
    assert line.startswith(start)


@pytest.mark.unexpected
@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_returned_names_the_plugin(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is taken is checked; an error that comes later names the plug-ins in use."""
    assert ended(kind, "return None", tmp_path, monkeypatch) == EXIT_UNEXPECTED
    (line,) = capsys.readouterr().err.splitlines()
    later = kind in ("compressor", "synthetic workload")
    assert line.startswith(f"buddysim: unexpected: {'with ' * later}plug-in {tmp_path / 'faulty.py'}: ")
    assert later or f"{kind} faulty: " in line
    assert later or "returned None, expected a" in line
    assert [path.name for path in tmp_path.glob("x.*")] == []


def test_a_file_that_a_plugin_cannot_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended("figure", "open('absent')", tmp_path, monkeypatch) == 2
    line = f"buddysim: error: plug-in {tmp_path / 'faulty.py'}: absent: No such file or directory\n"
    assert capsys.readouterr().err == line
