"""Files that users name: what can't be read is one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import buddysim
from buddysim.base import inputs
from buddysim.base.errors import BuddysimError
from buddysim.machine.training import TrainingMachine
from buddysim.training.named_network import load_network

NAMES = ("a" * 300, "a" * 300 + ".py", "a/" * 3000, "a\0b", "")
READERS = (buddysim.Machine.load, TrainingMachine.load, load_network, buddysim.load_plugin, buddysim.open_trace)


@pytest.mark.parametrize("name", NAMES, ids=("long", "long-py", "deep", "null", "empty"))
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__qualname__)
def test_names_that_no_file_has_are_refused(read, name: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BuddysimError):
        read(name)


def test_a_file_that_has_nothing_at_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As /proc/kmsg, a regular file that only root can read; an empty pipe stands for it."""
    reads, writes = os.pipe2(os.O_NONBLOCK)
    monkeypatch.setattr(inputs, "open_descriptor", lambda *_, **__: reads)
    with pytest.raises(BuddysimError, match="x: can't read the thing: Resource temporarily unavailable"):
        inputs.read_bytes("x", "thing", 10)
    os.close(writes)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc" * 100_000)
    with inputs.open_input(tmp_path / "x", "thing") as file:
        assert file.read() == b"abc" * 100_000
