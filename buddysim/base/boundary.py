"""The boundary of every entry: no error leaves the process as a traceback.

An entry is what something outside of the package calls: a command, a worker's function, a child process, the import of
a plug-in, a notebook's display. Each runs in `inside`. A known error is one line, exit code 2. Any other error is one
line and exit code 70, and `report_of` saves a report without contents of the user's files.
``BUDDYSIM_TRACEBACK=1`` prints the traceback as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shlex
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from buddysim.base.errors import BuddysimError
from buddysim.base.paths import user_folder
from buddysim.base.plugin_modules import installed, loaded, source_of, source_of_module
from buddysim.base.returned import WrongReturn
from buddysim.base.signals import Stopped, again, raise_lost
from buddysim.base.terminal import one_line, say

EXIT_USER_ERROR = 2
EXIT_UNEXPECTED = 70
"""The ``EX_SOFTWARE`` of sysexits.h."""
VARIABLE = "BUDDYSIM_TRACEBACK"

#: What every command needs: another Python than the one that buddysim was installed for lacks one of them.
NEEDED = ("numpy", "scipy", "matplotlib", "zstandard", "zlib_ng", "pydantic", "pydantic_core", "rich", "shtab")
_RIGHT_PYTHON = (
    "expected the Python that buddysim was installed for: . .venv/bin/activate (after make run), or pip install ."
)

_PACKAGE = Path(__file__).resolve().parents[1]
_LONGEST_MESSAGE = 240
_MAX_FRAMES = 40
_MAX_CAUSES = 8
_PACKAGES = ("buddysim", "numpy", "scipy", "pydantic", "matplotlib", "distributed", "duckdb", "pyarrow", "torch")

T = TypeVar("T")


@dataclass(frozen=True)
class Ending:
    """How an entry ends after an error.

    Attributes
    ----------
    code : exit code
    line : what the user reads
    """

    code: int
    line: str

    def tell(self) -> int:
        """Print the line; return the exit code."""
        say(self.line)
        return self.code


def inside(run: Callable[[], T], failed: Callable[[BaseException], T]) -> T:
    """Run an entry; an error of any class, ``SystemExit`` too, is given to `failed`.

    Only Ctrl-C and signals pass: they are the user's, and the outermost entry handles them.
    """
    try:
        return run()
    except (KeyboardInterrupt, Stopped):
        raise
    except BaseException as error:
        raise_lost()
        return failed(error)


def ending(error: BaseException) -> Ending:
    """Return how an entry ends after an error; saves a report where the error is unexpected."""
    if isinstance(error, BuddysimError):
        return Ending(EXIT_USER_ERROR, f"error: {error}")
    if isinstance(error, OSError):
        name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return Ending(EXIT_USER_ERROR, f"error: {_by_plugin(error)}{name}{error.strerror or error}")
    if isinstance(error, ModuleNotFoundError) and _is_uncompiled(error.name or ""):
        return Ending(
            EXIT_USER_ERROR, f"error: {error.name} isn't compiled: expected `make build` first, or pip install ."
        )
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in NEEDED:
        return Ending(EXIT_USER_ERROR, f"error: {sys.executable} has no package {error.name}: {_RIGHT_PYTHON}")
    if isinstance(error, MemoryError):
        message = f": {error}" if str(error) else ""
        return Ending(EXIT_USER_ERROR, f"error: {_by_plugin(error)}out of memory{message}")
    if os.environ.get(VARIABLE) == "1":
        traceback.print_exception(error)
    return Ending(EXIT_UNEXPECTED, f"unexpected: {named(error)}; {_saved(error)}")


def _is_uncompiled(module: str) -> bool:
    """Whether a module of this package has its Cython source alone."""
    package, *parts = module.split(".")
    return package == _PACKAGE.name and bool(parts) and _PACKAGE.joinpath(*parts).with_suffix(".pyx").is_file()


def run_program(run: Callable[[], int]) -> int:
    """Run the main function of a child process; return its exit code."""
    return inside(run, lambda error: ending(error).tell())


def named(error: BaseException) -> str:
    """Return the plug-in that an error comes from, if any, the error's class and its message.

    Where no function of a plug-in is on the error's way, those in use are named: what one returned can fail later.
    """
    message = f": {error}" if str(error) else ""
    in_use = ", ".join(str(source_of(module)) for module in (*loaded.values(), *installed.values()))
    before = _by_plugin(error) or (f"with plug-in {in_use}: " if in_use else "")
    return f"{one_line(before)} {one_line(f'{type(error).__name__}{message}', _LONGEST_MESSAGE)}".lstrip()


def _by_plugin(error: BaseException) -> str:
    plugin = plugin_of(error)
    return "" if plugin is None else f"plug-in {plugin}: "


@contextlib.contextmanager
def watched() -> Iterator[list[BaseException]]:
    """Within the block, an error of a thread or of clean-up code is one line too; gives the list of these errors."""
    errors: list[BaseException] = []

    def tell(hook: Any) -> None:
        if hook.exc_value is None or isinstance(hook.exc_value, SystemExit):
            return
        if not again(hook.exc_value):
            errors.append(hook.exc_value)
            ending(hook.exc_value).tell()

    before = threading.excepthook, sys.unraisablehook
    threading.excepthook = sys.unraisablehook = tell
    try:
        yield errors
    finally:
        threading.excepthook, sys.unraisablehook = before


def report_folder() -> Path:
    """Return the folder of reports: ``$XDG_STATE_HOME/buddysim``, else ``~/.local/state/buddysim``.

    Raises
    ------
    FileNotFoundError
        the user has no home folder
    """
    return user_folder("XDG_STATE_HOME", ".local/state")


def report_of(error: BaseException) -> str:
    """Return the report of an error: versions, the command, the traceback.

    It holds no messages and no values, which may quote the user's files, and source lines of this package alone.
    """
    lines = [
        "Report of an unexpected error. It holds the command, but no contents of files: messages are left out.",
        "",
        f"command: {shlex.join(sys.argv)}",
        f"python: {platform.python_version()}, {platform.platform()}",
        *(f"{name}: {number}" for name in _PACKAGES if (number := _version(name))),
        *_traceback_lines(error),
    ]
    return "\n".join(lines) + "\n"


def _saved(error: BaseException) -> str:
    """Save the report under a name that tells faults apart, so that a fault in many points is one file."""
    where = "\n".join(_traceback_lines(error))
    begin = ""
    try:
        path = report_folder() / f"unexpected-{hashlib.sha256(where.encode('utf-8', 'replace')).hexdigest()[:12]}.txt"
        begin = f"{path}: "
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report_of(error))
    except OSError as problem:
        return f"no report saved: {begin}{problem.strerror or problem}"
    return f"report saved in {path}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _traceback_lines(error: BaseException) -> list[str]:
    """Return an error and its causes, each with its class and the innermost frames."""
    lines: list[str] = []
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            break
        lines += ["", "caused by:" if lines else "traceback, innermost last:"]
        for frame in traceback.extract_tb(cause.__traceback__, limit=-_MAX_FRAMES):
            path = Path(frame.filename)
            own = _PACKAGE in path.parents
            lines.append(f"  {path.relative_to(_PACKAGE.parent) if own else path}:{frame.lineno}, in {frame.name}")
            lines += [f"    {frame.line}"] if own and frame.line else []
        lines.append(f"{type(cause).__module__}.{type(cause).__qualname__}")
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return lines


def plugin_of(error: BaseException) -> Any:
    """Return the file of the plug-in whose function is the innermost on the way of an error or of its causes."""
    if isinstance(error, WrongReturn):
        return error.plugin
    seen: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if seen is None:
            break
        source = _innermost_plugin(seen.__traceback__)
        if source is not None:
            return source
        seen = seen.__cause__ or seen.__context__
    return None


def _innermost_plugin(trace: TracebackType | None) -> Path | None:
    innermost = None
    while trace is not None:
        innermost = source_of_module(str(trace.tb_frame.f_globals.get("__name__"))) or innermost
        trace = trace.tb_next
    return innermost
