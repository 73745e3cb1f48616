"""What becomes of an exception of another library's parser: an error of one line that names the file.

A list of the exceptions that a parser raises is never complete. So each parser is called in one function of `base`, in
a ``try`` without any code of this package, whose ``except Exception`` raises `refusal`. Three kinds of exceptions stay
what they are: memory that is out and a full disk, which have lines of their own, and those of this package's code that
the parser called, a validator or a file: a bug must not look like a damaged file.
"""

from __future__ import annotations

import errno
from pathlib import Path
from types import TracebackType

from buddysim.base.errors import BuddysimError
from buddysim.base.plugin_modules import source_of_module

_PACKAGE = Path(__file__).resolve().parents[2]
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LONGEST_REASON = 200


def refusal(error: Exception, begin: str) -> BuddysimError:
    """Return the error of one line for an exception of a parser; raise the exception itself where it has to stay.

    Parameters
    ----------
    begin : of the line: the file, and what it is not
    """
    if isinstance(error, BuddysimError | MemoryError) or is_full_disk(error) or _is_own(error.__traceback__):
        raise error
    return BuddysimError(f"{begin}: {reason_of(error)}")


def is_full_disk(error: BaseException) -> bool:
    """Return whether an error says that nothing more can be written."""
    return isinstance(error, OSError) and error.errno in _FULL


def reason_of(error: Exception) -> str:
    """Return what an exception says; its class where it says nothing."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    said = (error.strerror if isinstance(error, OSError) else None) or _text(error)
    if "set_int_max_str_digits" in said:
        return "an integer with thousands of digits"
    return " ".join(said.split("\n\nLINE")[0].split())[:_LONGEST_REASON] or type(error).__name__


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # its class is foreign, too
        return ""


def _is_own(trace: TracebackType | None) -> bool:
    """Return whether an exception passed through code of this package, or of a plug-in, that the parser called.

    The first frame is that of the function which calls the parser.
    """
    trace = trace and trace.tb_next
    while trace is not None:
        frame = trace.tb_frame
        if _PACKAGE in Path(frame.f_code.co_filename).parents:
            return True
        if source_of_module(str(frame.f_globals.get("__name__"))) is not None:
            return True
        trace = trace.tb_next
    return False
