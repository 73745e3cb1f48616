"""`buddysim machines`, and the errors and exit codes of every command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import buddysim.cli
from buddysim.base import signals
from buddysim.cli import main
from buddysim.machine import Machine, TrainingMachine
from buddysim.machine.model import keys


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    try:
        code = main(argv)
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def error(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    code, out, err = run(capsys, *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("buddysim: error: ")
    return err.removeprefix("buddysim: error: ").rstrip("\n")


def test_lists_every_machine(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "machines")
    assert (code, err) == (0, "")
    for name in Machine.presets():
        assert name in out
    assert all(line == line.rstrip() for line in out.splitlines())


@pytest.mark.parametrize("name", Machine.presets())
def test_shows_every_figure_with_its_source(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, err = run(capsys, "machines", name)
    assert (code, err) == (0, "")
    machine = Machine.load(name)
    words = " ".join(out.split())
    for key, _ in keys():
        if key not in ("name", "description"):
            assert f"{key} {machine.text(key)}" in words
            assert machine.source(key).split()[0] in words


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "machines", "v100", "--set", "l2.size=12MiB", "--json", "-")
    shown = json.loads(out)
    assert code == 0
    assert shown["l2"]["size"] == "12 MiB"
    assert shown["sources"]["l2.size"] == "given for this run (was: 6 MiB)"
    assert shown["checksum"] == Machine.load("v100").with_overrides({"l2.size": "12 MiB"}).checksum
    code, out, _ = run(capsys, "machines", "--json", "-")
    assert set(json.loads(out)) == {*Machine.presets(), *TrainingMachine.names()}


def test_toml_is_a_machine_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in Machine.presets():
        code, out, _ = run(capsys, "machines", name, "--toml")
        path = tmp_path / f"{name}.toml"
        path.write_text(out)
        assert code == 0
        assert Machine.load(path) == Machine.load(name)


def test_a_machine_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "a100-40"\nname = "mine"\n[sm]\ncount = 12\n')
    code, out, _ = run(capsys, "machines", str(path))
    assert code == 0
    assert out.startswith("mine: ")


def test_user_errors_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "p101: unknown machine" in error(capsys, "machines", "p101")
    assert "(nearest: l2.size)" in error(capsys, "machines", "v100", "--set", "l2.siez=1MiB")
    assert error(capsys, "machines", "v100", "--set", "l2.size").startswith("--set: 'l2.size': expected KEY=VALUE")
    assert "--set: l2.ways: 0 is out of range" in error(capsys, "machines", "v100", "--set", "l2.ways=0")
    assert "no machine: expected the name of one" in error(capsys, "machines", "--set", "l2.ways=4")
    assert "Is a directory" in error(capsys, "machines", str(tmp_path))
    assert "No such file" in error(capsys, "machines", str(tmp_path / "absent.toml"))
    line = error(capsys, "machines", "--jsno")
    assert "machines: option --jsno: unknown (nearest: --json) (try: buddysim machines --help)" in line
    assert "capture opencl: option --outptu: unknown (nearest: --output)" in error(
        capsys, "capture", "opencl", "--outptu", "x", "-o", "x.bin", "--", "true"
    )
    assert "info: 'second.bin': one argument too many" in error(capsys, "info", "first.bin", "second.bin")
    assert "COMMAND" in error(capsys)
    assert "command 'machine': unknown (nearest: machines) (try: buddysim --help)" in error(capsys, "machine")
    assert "command 'xyzzy': unknown: expected one of run, train," in error(capsys, "xyzzy")
    assert "capture: kind 'opnecl': unknown (nearest: opencl)" in error(capsys, "capture", "opnecl")


def command_that(raises: BaseException) -> ModuleType:
    module = ModuleType("command")

    def fail(args: object) -> int:
        raise raises

    vars(module).update(NAME="fail", TASK="fail", HELP="fails", add_arguments=lambda parser: None, run=fail)
    return module


@pytest.mark.parametrize(
    ("raises", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "buddysim: interrupted; nothing half-written was left\n"),
        (PermissionError(13, "Permission denied", "/x"), 2, "buddysim: error: /x: Permission denied\n"),
        (OSError(28, "No space left on device"), 2, "buddysim: error: No space left on device\n"),
        (MemoryError(), 2, "buddysim: error: out of memory\n"),
    ],
)
def test_what_can_happen_to_any_command(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raises: BaseException,
    code: int,
    message: str,
) -> None:
    monkeypatch.setattr(buddysim.cli.REGISTRY, "items", lambda: iter([("fail", command_that(raises))]))
    handled = (signal.SIGINT, *signals.ENDING)
    handlers = [signal.getsignal(number) for number in handled]
    assert run(capsys, "fail") == (code, "", message)
    assert [signal.getsignal(number) for number in handled] == handlers, "a program that goes on has other handlers"


@pytest.mark.unexpected
def test_internal_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failing = [("fail", command_that(ZeroDivisionError()))]
    monkeypatch.setattr(buddysim.cli.REGISTRY, "items", lambda: iter(failing))
    code, _, message = run(capsys, "fail")
    assert code == 70
    assert message.startswith("buddysim: unexpected: ZeroDivisionError; report saved in ")


def test_a_closed_pipe_is_no_error() -> None:
    program = f"{sys.executable} -m buddysim machines v100 --json - | head -c 1"
    done = subprocess.run(["/bin/sh", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{", "")


def test_version_and_completion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version")[1] == f"buddysim {buddysim.__version__}\n"
    code, out, _ = run(capsys, "--print-completion", "bash")
    assert code == 0
    assert "machines" in out


def test_the_help_lists_every_command_under_the_task_that_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    plugin = Path(__file__).parents[2] / "docs" / "examples" / "plugins" / "allocations.py"
    _, out, _ = run(capsys, "--help", "--plugin", str(plugin))
    sections = dict(part.split(":\n", 1) for part in out.split("\n\n")[2:6])
    names = {task: [line.split()[0] for line in lines.splitlines()] for task, lines in sections.items()}
    assert names == buddysim.cli.commands_by_task()
    assert list(names) == ["simulate", "prepare", "look", "machine and models"]
    assert names["simulate"] == ["run", "train", "fit", "sweep", "assumptions"]
    assert "allocations" in names["prepare"]


def test_every_command_has_what_a_command_has() -> None:
    assert "machines" in buddysim.cli.REGISTRY
    for _, module in buddysim.cli.REGISTRY.items():
        assert module.TASK
        assert module.HELP
        assert callable(module.add_arguments)
        assert callable(module.run)


def test_explain_shows_a_default_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "l2.partitions")
    assert code == 0
    assert out.count("no partitions are known") == 1
    assert "p100-nvlink2: 1; the default\n" in out
    assert "a100-40: 2; NVIDIA A100 whitepaper" in out
