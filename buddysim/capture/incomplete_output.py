"""What becomes of a capture's part, ``OUT.incomplete``, when the program has ended or the capture broke off."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError
from buddysim.base.output import Output
from buddysim.base.terminal import warn


def settle(output: Output, returncode: int, *, empty: bool) -> bool:
    """Puts a capture's file in its place; returns whether it is there now.

    The capture of a program that failed doesn't replace a file: it stays as the part, or goes where nothing is in it.

    Parameters
    ----------
    output : whose part is complete
    returncode : of the program
    empty : whether nothing was captured
    """
    if returncode == 0 or not output.path.exists():
        output.put()
        return True
    if empty:
        output.discard()
        warn(f"{output.path}: stays as it was: the program failed, and nothing was captured")
    else:
        warn(f"{output.path}: stays as it was: the program failed; what was captured is in {output.part}")
    return False


def broken_off(output: Output, error: BuddysimError) -> BuddysimError:
    """The error of a capture that couldn't be written on, a full disk for one; the program ran on to its end."""
    return BuddysimError(f"{error}; what was captured before is in {output.part}")
