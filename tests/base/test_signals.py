"""A signal unwinds a command where that is safe, waits where it is not, and reaches no worker through a terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from buddysim.base import boundary, signals


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_arrival", signals._Arrival())


@contextlib.contextmanager
def interrupted() -> Iterator[None]:
    """Expect that a signal ends the block."""
    try:
        yield
    except (KeyboardInterrupt, signals.Stopped):
        return
    raise AssertionError("no signal was raised")


def send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_end_of_a_block(number: int) -> None:
    lines = []
    with interrupted(), signals.unwinding():
        with signals.deferred():
            send(number)
            time.sleep(3 * signals._RETRY_S)
            lines.append("rest of the block")
        lines.append("never")
    assert lines == ["rest of the block"]


def test_a_block_within_a_block_lets_signals_through_and_closes_again() -> None:
    closed = []
    with interrupted(), signals.unwinding(), signals.deferred():
        try:
            with signals.undeferred():
                send()
                time.sleep(10)
        finally:
            send()  # the user presses Ctrl-C twice
            time.sleep(3 * signals._RETRY_S)
            closed.append("everything")
    assert closed == ["everything"]


def test_a_signal_before_a_block_that_lets_them_through_is_raised_there() -> None:
    with interrupted(), signals.unwinding(), signals.deferred():
        send()
        with signals.undeferred():
            raise AssertionError


def test_what_hangs_in_a_block_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_LONGEST_BLOCK_S", 0.1)
    with interrupted(), signals.unwinding(), signals.deferred():
        send()
        time.sleep(10)
        raise AssertionError


def test_a_signal_waits_for_the_end_of_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in an import leaves modules half made, and a library may make another error of it."""
    (tmp_path / "imported_slowly.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.1)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with interrupted(), signals.unwinding():
        import imported_slowly  # type: ignore[import-not-found]

        time.sleep(10)
    assert imported_slowly.whole


def test_a_signal_that_python_drops_is_raised_again() -> None:
    """Python can't raise an exception out of a finalizer."""

    class Finalized:
        def __del__(self) -> None:
            send()

    made = [Finalized()]
    with interrupted(), signals.unwinding(), boundary.watched() as errors:
        made.clear()
        time.sleep(10)
    assert errors == []


def test_a_signal_of_which_a_library_makes_another_error_is_raised_again() -> None:
    def interrupted_query() -> None:
        try:
            send()
            time.sleep(10)
        except KeyboardInterrupt:
            raise RuntimeError("query interrupted") from None

    with interrupted(), signals.unwinding():
        boundary.inside(interrupted_query, lambda error: None)
        raise AssertionError


def test_handlers_of_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with signals.unwinding(), signals.deferred():
            send()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_process_started_without_the_terminal_does_not_get_its_signals() -> None:
    code = "print([line for line in open('/proc/self/status') if line.startswith('SigBlk')][0])"
    with signals.without_terminal():
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(shown.split()[1], 16) >> (signal.SIGINT - 1) & 1
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.slow
def test_a_signal_after_the_end_is_ignored() -> None:
    """The interpreter's own end, with the threads that libraries have left, is longer than it seems."""
    code = (
        "import atexit, os, signal, sys\nfrom buddysim import __main__ as program\n"
        "atexit.register(lambda: [os.kill(os.getpid(), signal.SIGINT), print('ended')])\n"
        "sys.argv = ['buddysim', 'list']\nsys.exit(program.run())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("ended\n")


def test_an_interrupt_of_code_that_is_run_as_text_does_not_change_the_exit_code(tmp_path: Path) -> None:
    """Python would end by SIGINT after the exit code is decided."""
    (tmp_path / "interrupted_text.py").write_text(
        "import sys\nfrom buddysim.base import signals\n"
        "text = 'import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(10)'\n"
        "sys.exit(signals.run_to_end(lambda: exec(text)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted_text"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "buddysim: interrupted; nothing half-written was left\n")


@pytest.mark.parametrize("module", ["buddysim.base", "buddysim.base.signals", "buddysim.base.terminal"])
def test_ctrl_c_during_the_first_imports_of_a_command_says_nothing(module: str, tmp_path: Path) -> None:
    """The finder sends it when the module is imported."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "buddysim", "--version"], env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (-signal.SIGINT, 130)
