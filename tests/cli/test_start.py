"""What a help screen imports, counted in modules: the time of a start is that of its imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import contextlib, io, json, sys
from buddysim.__main__ import run
sys.argv = ["buddysim", *{arguments!r}]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    run()
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(*arguments: str) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    shown = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(arguments=arguments)], check=True, capture_output=True, text=True
    ).stdout
    return set(json.loads(shown))


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_programs_help_imports_no_library_and_nothing_that_commands_do(option: str) -> None:
    modules = modules_after(option)
    assert not modules & {"numpy", "pydantic", "rich", "matplotlib"}
    own = {name for name in modules if name.startswith("buddysim.")}
    assert {name.split(".")[1] for name in own} <= {"__main__", "base", "capture", "cli"}
    assert len(modules) < 240


def test_the_help_of_run_knows_schemes_and_options_but_no_trace_and_no_machine() -> None:
    modules = modules_after("run", "--help")
    assert not modules & {
        "buddysim.buddy.profiler",
        "buddysim.machine.model",
        "buddysim.replay.driver",
        "buddysim.replay.result",
        "buddysim.trace",
        "rich",
    }
    assert len(modules) < 510


def test_the_list_has_titles_of_figures_without_matplotlib() -> None:
    modules = modules_after("list")
    assert "buddysim.figures.vdnn_fig11" in modules
    assert not modules & {"matplotlib", "scipy", "asyncio"}


def test_the_help_of_train_knows_schemes_and_options_but_no_library_of_arrays() -> None:
    modules = modules_after("train", "--help")
    assert "buddysim.training.schemes.vdnn" in modules
    assert not modules & {
        "buddysim.figures",
        "buddysim.formats",
        "buddysim.machine.model",
        "buddysim.replay",
        "buddysim.training.cost.model",
        "buddysim.training.recorded_step",
        "matplotlib",
        "numpy",
        "pydantic",
        "rich",
    }
    assert len(modules) < 460


@pytest.mark.slow
def test_a_stored_completion_script_needs_no_library_and_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert {"numpy", "shtab", "buddysim.cli.run"} <= modules_after("--print-completion", "bash")
    modules = modules_after("--print-completion", "bash")
    assert not modules & {"numpy", "pydantic", "rich", "shtab", "matplotlib", "buddysim.cli.run"}
    assert len(modules) < 210
