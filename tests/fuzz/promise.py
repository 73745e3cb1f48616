"""The promise that every command keeps for any input (docs/reference/untrusted-files.md)."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from buddysim.base.budget import MEMORY_BYTES, READING_S
from buddysim.base.errors import BuddysimError
from buddysim.base.result import peak_rss_bytes
from buddysim.base.terminal import LONGEST_LINE, say
from buddysim.cli import main
from buddysim.importers.opencl import convert_bundle
from tools.archive import folder_with

#: Processor time of a command on a small file after which it counts as hanging; sanitizers take ten times as long.
MAX_S = READING_S
#: Memory that a command may allocate for a small file, and bytes that it may write.
MAX_BYTES = MEMORY_BYTES

_PREFIXES = ("buddysim: ", "results: ")
#: Lines of the screen of a sweep: labelled ones, and the blocks of its failures.
_SWEEP_LINE = re.compile(
    r"\d[\d,]* points?: |(store|note|estimate|workers|waiting|progress|stopped|done|next|failed)\b| {2,}\S"
)


class Hangs(AssertionError):
    """A command runs for too long."""


def keeps_its_promise(arguments: Sequence[str], err: io.StringIO | None = None) -> tuple[int, str]:
    """Run a command in this process; AssertionError if it breaks the promise.

    Parameters
    ----------
    err : gets the standard error

    Returns
    -------
    tuple of the exit code and the standard output
    """
    out, err = io.StringIO(), io.StringIO() if err is None else err
    with limited(), _warnings_shown(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = _convert(*arguments[1:]) if arguments[0] == "convert" else main(arguments)
        except SystemExit as left:
            code = int(left.code or 0)
    messages = err.getvalue()
    assert code in (0, 2), f"exit code {code}: {messages}"
    errors = []
    for line in messages.splitlines():
        assert line.startswith(_PREFIXES) or _SWEEP_LINE.match(line), f"a line of another library: {line[:200]!r}"
        assert len(line) <= LONGEST_LINE + len(_PREFIXES[0]), f"a line of {len(line)} characters"
        assert line.isprintable(), f"control characters: {line!r}"
        errors += [line] if line.startswith("buddysim: error: ") else []
    assert len(errors) == (code == 2), f"exit code {code} with {len(errors)} errors: {messages[:1000]}"
    for line in out.getvalue().splitlines():
        assert line.isprintable() or not set(line) & set("\x1b\x07\x08\x7f\u202e\u202d"), f"output: {line[:200]!r}"
    return code, out.getvalue()


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Limit processor time and memory; AssertionError where one is exceeded."""
    before, written_before = peak_rss_bytes(), _written_bytes()
    with _ends():
        yield
    grown, written = peak_rss_bytes() - before, _written_bytes() - written_before
    assert grown <= MAX_BYTES, f"took {grown >> 20} MiB"
    assert written <= MAX_BYTES, f"wrote {written >> 20} MiB"


def _written_bytes() -> int:
    """Bytes that this process has written so far, to whatever."""
    (line,) = [one for one in Path("/proc/self/io").read_text(encoding="ascii").splitlines() if one.startswith("wchar")]
    return int(line.split()[1])


def _convert(bundle: str, output: str) -> int:
    """Convert a bundle, or an archive of one, as `tools/make_traces.py` does."""
    try:
        with folder_with(Path(bundle), "meta.jsonl") as folder:
            convert_bundle(folder, output)
    except BuddysimError as error:
        say(f"error: {error}")
        return 2
    return 0


@contextlib.contextmanager
def _warnings_shown() -> Iterator[None]:
    """Show every warning, not only the first of a line: a warning of a library is not a line of this package."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        yield


@contextlib.contextmanager
def _ends() -> Iterator[None]:
    """Limit the processor time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hangs(f"takes more than {MAX_S} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MAX_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
