"""No foreign exception leaves the process: every entry runs in `base.boundary`."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from buddysim.base import boundary, plugins
from buddysim.base.errors import BuddysimError
from buddysim.base.notebook import SCREENS, html
from buddysim.cli import main
from buddysim.sweep.execute import BUG, failure
from tests.syntax_trees import nodes_of

PACKAGE = Path(__file__).parents[2] / "buddysim"

COMMAND = """
NAME, TASK, HELP = "breaks", "tests", "raises what it is told"
class Own(BaseException):
    pass
def add_arguments(parser):
    parser.add_argument("what")
def run(args):
    secret = "contents of a file"
    raise {"exit": SystemExit(0), "own": Own(secret), "type": TypeError(secret), "value": KeyError(secret)}[args.what]
"""

#: Functions that something outside of the package calls: each has to call one of the boundary's functions.
ENTRIES = {
    "cli/__init__.py": "watched",
    "__main__.py": "run",
    "base/plugins.py": "_import_file _import_entry",
    "base/notebook.py": "html",
    "plotting/notebook_figure.py": "_repr_png_",
    "sweep/execute.py": "run_point",
    "sweep/cluster.py": "run_remotely",
    "sweep/worker.py": "dask_setup",
    "capture/script_process.py": "main",
    "capture/torch/script.py": "run",
    "capture/triton_kernels/script_program.py": "run",
    "training/networks/from_torch/find.py": "find_module _imported",
}

#: What makes a module an entry.
ENTERED = re.compile(r"__main__|def _repr_|def dask_|exec_module|run_path")


def calls(node: ast.AST) -> set[str]:
    return {ast.unparse(call.func).rpartition(".")[2] for call in ast.walk(node) if isinstance(call, ast.Call)}


@pytest.mark.parametrize("file", ENTRIES)
def test_every_entry_is_inside(file: str) -> None:
    functions = {node.name: node for node in nodes_of(PACKAGE / file) if isinstance(node, ast.FunctionDef)}
    for name in ENTRIES[file].split():
        assert calls(functions[name]) & {"inside", "run_program"}, f"{file}: {name} is outside of the boundary"


def test_every_program_and_display_is_an_entry() -> None:
    """A module that can be run, a display of a notebook, a function that a Dask worker gets or loads at its start."""
    outside = []
    for path in sorted(PACKAGE.rglob("*.py")):
        file, text = str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8")
        if ENTERED.search(text) is None or file in ENTRIES:
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
                outside += [] if "run_program" in calls(node) else [f"{file}: __main__"]
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("_repr_"):
                outside += [] if "html" in calls(node) else [f"{file}: {node.name}"]
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("dask_"):
                outside += [f"{file}: {node.name}"]
            elif isinstance(node, ast.Attribute) and node.attr in ("exec_module", "run_path"):
                outside += [f"{file}: {node.attr}"]
    assert not outside


def plugin(folder: Path) -> str:
    file = folder / "breaking.py"
    file.write_text(COMMAND)
    return str(file)


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"XDG_STATE_HOME": str(folder / "state")} | environment
    command = [sys.executable, "-m", "buddysim", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        pytest.param("exit", "SystemExit: 0", marks=pytest.mark.slow),
        ("own", "Own: contents of a file"),
        pytest.param("type", "TypeError: contents of a file", marks=pytest.mark.slow),
        pytest.param("value", "KeyError: 'contents of a file'", marks=pytest.mark.slow),
    ],
)
def test_an_unexpected_error_is_one_line_and_a_report(what: str, line: str, tmp_path: Path) -> None:
    file = plugin(tmp_path)
    done = run(tmp_path, "--plugin", file, "breaks", what)
    assert done.returncode == boundary.EXIT_UNEXPECTED
    (report,) = (tmp_path / "state" / "buddysim").iterdir()
    assert done.stderr == f"buddysim: unexpected: plug-in {file}: {line}; report saved in {report}\n"
    text = report.read_text()
    assert "contents of a file" not in text
    assert f"{file}:9, in run" in text
    assert f"breaks {what}" in text
    assert report.stat().st_mode & 0o777 == 0o600


@pytest.mark.unexpected
def test_a_developer_gets_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(boundary.VARIABLE, "1")
    assert boundary.run_program(lambda: [][0]) == boundary.EXIT_UNEXPECTED
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("buddysim: unexpected: IndexError: ")


def test_a_report_that_cannot_be_saved_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").write_text("a file, where a folder is expected")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert boundary.run_program(lambda: [][0]) == boundary.EXIT_UNEXPECTED
    (line,) = capsys.readouterr().err.splitlines()
    assert "; no report saved: " in line


@pytest.mark.unexpected
def test_the_same_fault_is_one_report() -> None:
    def fault(text: str) -> str:
        return boundary.inside(lambda: str(1 + text), lambda error: boundary.ending(error).line)  # type: ignore

    first, second = fault("a"), fault("b")
    assert first == second
    assert "report saved in" in first


@pytest.mark.parametrize(
    "content", ["import sys; sys.exit(0)", "class Own(BaseException): pass\nraise Own", "raise GeneratorExit"]
)
def test_a_plugin_that_leaves_while_it_is_imported_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "leaving.py"
    file.write_text(content)
    with pytest.raises(BuddysimError, match=r"leaving.py: plug-in can't be imported: (SystemExit|Own|GeneratorExit)"):
        plugins.load_plugin(file)


@pytest.mark.parametrize("error", [KeyboardInterrupt, boundary.Stopped])
def test_ctrl_c_and_signals_pass(error: type[BaseException]) -> None:
    def interrupted() -> None:
        raise error(*((15,) if error is boundary.Stopped else ()))

    with pytest.raises(error):
        boundary.inside(interrupted, lambda error: None)


@pytest.mark.unexpected
def test_an_error_of_a_thread_ends_the_command_with_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from buddysim.cli import list_

    def starts_a_thread(args: object) -> int:
        thread = threading.Thread(target=lambda: [][0])
        thread.start()
        thread.join()
        return 0

    monkeypatch.setattr(list_, "run", starts_a_thread)
    assert main(["list"]) == boundary.EXIT_UNEXPECTED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("buddysim: unexpected: IndexError: ")


@pytest.mark.unexpected
@pytest.mark.parametrize("kind", SCREENS)
def test_a_display_of_a_notebook_shows_the_line(kind: str) -> None:
    assert html(kind, {"<b>": {}}).startswith("<pre>buddysim: unexpected: ")


@pytest.mark.unexpected
def test_a_point_of_a_sweep_fails_with_the_line() -> None:
    outcome = failure(SystemExit(3), None)
    assert outcome["why"] == BUG
    assert outcome["reason"].startswith("unexpected: SystemExit: 3; report saved in ")


@pytest.mark.slow
def test_tests_fail_where_a_report_remains(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("from buddysim.base.boundary import ending\n\n\ndef test_it():\n    ending(TypeError('x'))\n")
    (tmp_path / "conftest.py").write_text((PACKAGE.parent / "tests" / "conftest.py").read_text())
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(test),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "an unexpected error, exit code 70" in done.stdout


@pytest.mark.unexpected
def test_a_package_that_is_not_compiled_says_so() -> None:
    error = ModuleNotFoundError("No module named 'buddysim.compress.zeros'", name="buddysim.compress.zeros")
    assert boundary.ending(error) == boundary.Ending(
        2, "error: buddysim.compress.zeros isn't compiled: expected `make build` first, or pip install ."
    )
    missing = ModuleNotFoundError("No module named 'buddysim.compress.nothing'", name="buddysim.compress.nothing")
    assert boundary.ending(missing).code == boundary.EXIT_UNEXPECTED
