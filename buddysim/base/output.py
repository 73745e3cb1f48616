"""Write a file: checked before the work, written next to its path, renamed when it is complete."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NoReturn

from buddysim.base import plugins
from buddysim.base.errors import BuddysimError

#: Ending of the part that an interrupted capture leaves; only `recover` reads it.
INCOMPLETE = ".incomplete"

_DESCRIPTOR = re.compile(r"/(?:dev|proc/(self|[0-9]+))/fd/([0-9]{1,9})")
_PARTIAL = ".partial"
_MAX_LINKS = 40
_MAX_NAME_BYTES = 100  # bytes of a file's name in that of its part: both together must be a name
_numbers = itertools.count()
#: Unfinished files, each with the descriptor that locks it as long as this process works on it.
_parts: dict[Path, int | None] = {}

AnyPath = str | os.PathLike[str]


class Output:
    """A file that is written under another name in the same folder, and renamed when it is complete.

    A pipe or a device gets the bytes at the end: a file must not replace it.

    Parameters
    ----------
    path : where the file goes
    inputs : files that the work reads; None is skipped. The output must be none of them, whatever its name
    keep_part : whether the bytes written so far stay as ``PATH.incomplete`` if the work ends early

    Attributes
    ----------
    part : the file to write to until `put`

    Raises
    ------
    BuddysimError
        where nothing can be written there, or it is an input
    """

    def __init__(self, path: AnyPath, inputs: Iterable[AnyPath | None] = (), *, keep_part: bool = False) -> None:
        if not os.fspath(path):
            raise BuddysimError("an empty name: expected a file to write")
        self.path = Path(path)
        self.keep_part = keep_part
        self._inputs = [one for one in inputs if one is not None]
        self._target = self._checked()
        self._special = _is_special(self._target)
        if self._special:
            self.part = _made(Path(tempfile.gettempdir()), self.path)
            self.keep_part = False
        elif keep_part:
            self.part = self._target.with_name(self._target.name + INCOMPLETE)
            self._make_incomplete()
        else:
            self.part = _made(self._target.parent, self.path, self._target.name)

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.put()
        else:
            self.give_up()

    def put(self) -> None:
        """Rename the complete file."""
        try:
            self._checked()
            if self._special:
                _copy_through(self.part, self._target)
            else:
                self._keep_permissions()
                flush_to_disk(self.part)
                self.part.replace(self._target)
        except OSError as error:
            _refuse(self.path, error)
        finally:
            self.give_up()

    def take_over(self, other: Output) -> None:
        """Take over the part of another output."""
        shutil.move(other.part, self.part)
        _forget(other.part)

    def give_up(self) -> None:
        """Remove the part, or leave it with `keep_part`."""
        if not self.keep_part:
            self.discard()

    def discard(self) -> None:
        """Remove the part."""
        self.part.unlink(missing_ok=True)
        _forget(self.part)

    def _checked(self) -> Path:
        """The path to write, symbolic links followed."""
        try:
            target = _resolved(self.path)
            self._refuse_inputs(target)
            _check_kind(self.path, target)
        except (OSError, ValueError) as error:
            _refuse(self.path, error)
        return target

    def _refuse_inputs(self, target: Path) -> None:
        identity = _identity(target)
        if identity is None:
            return
        for one in (*self._inputs, *plugins.loaded_files()):
            if _identity(one) == identity:
                same = "" if Path(one) == self.path else f" (the same file as {os.fspath(one)})"
                raise BuddysimError(f"{self.path}: is an input{same}: expected another file to write")

    def _make_incomplete(self) -> None:
        try:
            os.close(_created(self.part))
        except FileExistsError:
            raise BuddysimError(
                f"{self.part}: is what an interrupted capture left: take it with 'python -m buddysim recover', "
                "or delete it"
            ) from None
        except OSError as error:
            _refuse(self.path, error)

    def _keep_permissions(self) -> None:
        """Take the permissions of the file that is replaced."""
        with contextlib.suppress(FileNotFoundError):
            self.part.chmod(stat.S_IMODE(self._target.stat().st_mode))


def check_output(path: AnyPath, inputs: Iterable[AnyPath | None] = ()) -> None:
    """Check before a long run that a file can be written; the arguments and errors are `Output`'s."""
    if os.fspath(path).endswith(INCOMPLETE):
        raise BuddysimError(f"{os.fspath(path)}: names that end in {INCOMPLETE} are those of interrupted captures")
    Output(path, inputs).discard()


def check_outputs(paths: Iterable[AnyPath | None], inputs: Iterable[AnyPath | None] = ()) -> None:
    """Check several files as `check_output` does; None is skipped, and no two may be the same file."""
    inputs = list(inputs)
    seen: dict[Path, AnyPath] = {}
    for path in paths:
        if path is None:
            continue
        check_output(path, inputs)
        resolved = _resolved(Path(path))
        if resolved in seen and not _is_special(resolved):
            raise BuddysimError(f"{os.fspath(path)}: is written twice: expected two files")
        seen[resolved] = path


def write_with(path: AnyPath, write: Callable[[Path], object], inputs: Iterable[AnyPath | None] = ()) -> None:
    """Call `write` with a temporary name, then rename that file."""
    with Output(path, inputs) as output:
        try:
            write(output.part)
        except OSError as error:
            _refuse(output.path, error)


def write_opened(path: AnyPath, write: Callable[[BinaryIO], object], inputs: Iterable[AnyPath | None] = ()) -> None:
    """Call `write` with an open file, for libraries that accept only names in UTF-8; then rename it."""

    def opened(part: Path) -> None:
        with part.open("wb") as file:
            write(file)

    write_with(path, opened, inputs)


def write_bytes(path: AnyPath, data: bytes, inputs: Iterable[AnyPath | None] = ()) -> None:
    """Write a file of these bytes, completely or not at all."""
    write_with(path, lambda part: part.write_bytes(data), inputs)


def write_text(path: AnyPath, text: str, inputs: Iterable[AnyPath | None] = ()) -> None:
    """Write a file of this text, completely or not at all; characters that UTF-8 lacks are escaped."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"), inputs)


def is_standard_output(path: AnyPath) -> bool:
    """Return whether an output is the standard output, which then takes no messages."""
    return _descriptor(_resolved(Path(path))) == 1


def remove_parts() -> None:
    """Remove all unfinished files, when a signal ends the process."""
    for part in list(_parts):
        with contextlib.suppress(OSError):
            part.unlink()
        _forget(part)


def flush_to_disk(path: Path) -> None:
    """Wait until the bytes of a file are on its disk: a name must not outlive them when the power fails."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse(path: Path, error: OSError | ValueError) -> NoReturn:
    reason = getattr(error, "strerror", None) or error
    raise BuddysimError(f"{path}: can't be written: {reason}") from None


def _resolved(path: Path) -> Path:
    """Follow symbolic links; a descriptor (``/dev/stdout``) keeps its name in /dev or /proc."""
    for _ in range(_MAX_LINKS):
        if _descriptor(path) is not None or not path.is_symlink():
            return path
        path = Path(os.path.normpath(path.parent.resolve() / path.readlink()))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _descriptor(path: Path) -> int | None:
    """Return the descriptor's number for a name in /dev or /proc."""
    match = _DESCRIPTOR.fullmatch(os.fspath(path))
    is_of_this_process = match is not None and match.group(1) in (None, "self", str(os.getpid()))
    return int(match.group(2)) if match and is_of_this_process else None


def _is_special(target: Path) -> bool:
    return _descriptor(target) is not None or (target.exists() and not target.is_file())


def _identity(path: AnyPath) -> tuple[int, int] | None:
    """Return device and inode of a regular file, else None."""
    try:
        status = os.stat(path)  # noqa: PTH116 - also of a name with bytes that Path doesn't take
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _check_kind(path: Path, target: Path) -> None:
    """Refuse a path that cannot be written, and one that must not be."""
    descriptor = _descriptor(target)
    if descriptor is not None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise BuddysimError(f"{path}: can't be written: it is open for reading only")
        return
    if target.is_dir():
        raise BuddysimError(f"{path}: is a folder: expected a file to write")
    if target.is_block_device() or target.is_socket():
        what = "a block device" if target.is_block_device() else "a socket"
        raise BuddysimError(f"{path}: is {what}: expected a file, a pipe or a character device")
    if not target.parent.is_dir():
        raise BuddysimError(f"{path}: can't be written: there is no folder {target.parent} to write it in")
    if target.exists() and not os.access(target, os.W_OK):
        raise BuddysimError(f"{path}: can't be written: no permission to write to it")


def _made(folder: Path, path: Path, name: str = "") -> Path:
    """Create an empty file in a folder, for the part of an output."""
    shortened_name = os.fsdecode(os.fsencode(name or path.name)[:_MAX_NAME_BYTES])
    _remove_abandoned(folder, f".{shortened_name}.")
    while True:
        part = folder / f".{shortened_name}.{os.getpid()}.{next(_numbers)}{_PARTIAL}"
        try:
            _parts[part] = None  # before it is there: a signal may come between
            _parts[part] = descriptor = _created(part)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileExistsError:  # a killed process of the same number left it
            _forget(part)
            continue
        except (OSError, ValueError) as error:
            _forget(part)
            _refuse(path, error)
        return part


def _created(part: Path) -> int:
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def _forget(part: Path) -> None:
    descriptor = _parts.pop(part, None)
    if descriptor is not None:
        os.close(descriptor)


def _remove_abandoned(folder: Path, begin: str) -> None:
    """Remove unfinished files of the same name that killed processes left."""
    with contextlib.suppress(OSError, ValueError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(begin) and entry.name.endswith(_PARTIAL):
                number = entry.name.removeprefix(begin).partition(".")[0]
                if number.isdecimal() and not _is_running(int(number)) and not _is_locked(entry.path):
                    Path(entry.path).unlink(missing_ok=True)


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user
        return True
    return True


def _is_locked(path: str) -> bool:
    """Whether a process works on an unfinished file, also one whose number another container counts."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _copy_through(part: Path, target: Path) -> None:
    number = _descriptor(target)
    if number == 1 and sys.stdout is not None:
        sys.stdout.flush()
    descriptor = os.dup(number) if number is not None else os.open(target, os.O_WRONLY | os.O_CLOEXEC)
    with part.open("rb") as source, open(descriptor, "wb") as sink:  # noqa: PTH123 - a descriptor
        shutil.copyfileobj(source, sink)
