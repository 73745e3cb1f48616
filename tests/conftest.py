"""Settings of every test."""

import os
import signal

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Screens have no width, as in a pipe, but where a test sets one (xdist sets it in its workers).
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")  # readline, which pytest imports, sets it past Python, for the programs that tests start

# A shell's background job ignores Ctrl-C, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_teardown() -> None:
    """Unblock all signals, as an interrupted command blocks them for its process and later programs."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
