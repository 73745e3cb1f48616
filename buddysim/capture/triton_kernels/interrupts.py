"""Ctrl-C waits for the end of a section of the trace file."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def postponed_interrupt() -> Iterator[None]:
    """Deliver Ctrl-C after the block; outside of the main thread nothing changes."""
    received: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
    except ValueError:  # not in the main thread, which gets the signal
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if received and callable(before):
            before(*received[0])
