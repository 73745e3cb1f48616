"""The end of a capture: its part ``OUT.incomplete`` becomes the output, stays, or is removed."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError
from buddysim.base.output import Output
from buddysim.base.terminal import warn


def settle(output: Output, returncode: int, *, empty: bool) -> bool:
    """Rename the file of a capture; return whether that was done.

    The capture of a failed program does not replace an existing file: it stays as OUT.incomplete, or is removed if
    empty.

    Parameters
    ----------
    output : the output, whose part is complete
    returncode : the program's
    empty : whether nothing was captured
    """
    if returncode == 0 or not output.path.exists():
        output.put()
        return True
    if empty:
        output.discard()
        warn(f"{output.path}: unchanged: the program failed, and nothing was captured")
    else:
        warn(f"{output.path}: unchanged: the program failed; the captured part is {output.part}")
    return False


def broken_off(output: Output, error: BuddysimError) -> BuddysimError:
    """Return the error of a capture that could not be written (a full disk); the program ran to its end."""
    return BuddysimError(f"{error}; the captured part is {output.part}")
