"""Memory and time of reading an input are bounded, whatever reads it; an option raises the bound."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import time
from contextlib import redirect_stderr, suppress
from pathlib import Path

import pytest

from buddysim.base import budget, inputs, signals
from buddysim.base.budget import larger_budget, max_unpacked_bytes, opened, within_budget
from buddysim.base.errors import BuddysimError
from tests.base.parsers.test_refusal import step
from tests.fuzz import good_files
from tests.fuzz.case import write_files
from tests.fuzz.corpus import Corpus
from tests.fuzz.promise import keeps_its_promise
from tests.fuzz.readers import READERS
from tests.test_hostile_cases import sparse_archive
from tools.convert_opencl_bundle import main as convert


@pytest.mark.parametrize("name", READERS)
def test_every_reader_is_within_the_budget(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    within: list[bool] = []
    monkeypatch.setattr(inputs, "opened", lambda *_: within.append(budget._state.reading is not None))
    for files, _ in Corpus(name).read()[:3]:
        write_files(tmp_path / "case", files)
        with suppress(BuddysimError):
            READERS[name](tmp_path / "case")
    assert within, "no file was opened"
    assert all(within)


def test_reading_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "READING_S", 0.3)
    monkeypatch.setattr(budget, "_LOOK_S", 0.1)

    @within_budget
    def read(name: str, n_bytes: int = 10, max_s: float = 20) -> None:
        opened(name, n_bytes)
        end = time.process_time() + max_s
        while time.process_time() < end:
            pass

    with pytest.raises(BuddysimError, match=r"x\.bin: reading it takes more than 0 s of processor time \(.*--input-b"):
        read("x.bin")
    read("x.bin", 10 << 20, 0.6)  # in proportion to the file
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


@within_budget
def takes(n_bytes: int, file_bytes: int = 10) -> int:
    opened("x.bin", file_bytes)
    return len([bytes([index & 127 | 1]) * (1 << 20) for index in range(n_bytes >> 20)])


def test_memory_of_reading_is_bounded_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_LOOK_S", 0.002)
    with larger_budget(32 << 20):
        with pytest.raises(BuddysimError, match=r"x\.bin: reading it takes more than 33554432 bytes of memory"):
            takes(8 << 30)
        assert takes(128 << 20, 16 << 20) == 128, "memory in proportion to the file"


def test_what_is_retained_counts_at_the_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no signal arrived on the way."""
    monkeypatch.setattr(budget, "_LOOK_S", 1000)
    retained: list[bytes] = []

    @within_budget
    def read() -> None:
        retained.append(b"x" * (64 << 20))

    with larger_budget(16 << 20), pytest.raises(BuddysimError, match="input: reading it takes more than"):
        read()


def test_a_signal_of_another_process_arrives_while_a_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_arrival", signals._Arrival())

    @within_budget
    def read() -> None:
        signal.raise_signal(signal.SIGVTALRM)

    with signals.unwinding(), pytest.raises(signals.Stopped):
        read()


def test_where_python_has_no_timers_the_end_alone_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "setitimer")
    assert takes(1 << 20) == 1
    monkeypatch.setattr(budget, "READING_S", 0.01)

    @within_budget
    def read() -> None:
        end = time.process_time() + 0.05  # some systems count processor time in steps of 10 ms
        while time.process_time() < end:
            pass

    with pytest.raises(BuddysimError, match="processor time"):
        read()


def test_a_program_that_uses_the_signal_keeps_it() -> None:
    arrived: list[int] = []
    before = signal.signal(signal.SIGVTALRM, lambda number, frame: arrived.append(number))
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 1000)
        assert within_budget(lambda: signal.raise_signal(signal.SIGVTALRM) or 3)() == 3
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 900
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert arrived == [signal.SIGVTALRM]


def test_the_option_counts_for_a_command_and_ends_with_it(tmp_path: Path) -> None:
    text = b" " * 1_000_000 + json.dumps(good_files.profiler_trace()).encode()
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(text))
    command, err = [*step(tmp_path), f"{tmp_path}/x.json.gz"], io.StringIO()
    assert keeps_its_promise([*command, "--input-budget", "1 kB"], err)[0] == 2
    assert "(a file that you trust: --input-budget SIZE)" in err.getvalue()
    assert keeps_its_promise(command)[0] == 0
    assert max_unpacked_bytes(1) == 1 << 30


def test_the_option_counts_for_a_bundle(tmp_path: Path) -> None:
    sparse_archive(tmp_path, size=20 << 20)
    lines = []
    for words in ([], ["--input-budget", "1 MiB"], ["--input-budget", "0 B"]):
        with redirect_stderr(io.StringIO()) as err:
            assert convert([str(tmp_path / "x.tar"), "-o", os.fspath(tmp_path / "o.bin"), *words]) == 2
        lines.append(err.getvalue())
    assert "becomes more than" not in lines[0]
    assert "becomes more than" in lines[1]
    assert "--input-budget: 0 B: expected more than nothing" in lines[2]
