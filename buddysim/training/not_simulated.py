"""The error of a scheme that can't be simulated with an option; other schemes can."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError


class NotSimulatedError(BuddysimError):
    """A scheme that can't be simulated with an option.

    Parameters
    ----------
    expected : what to use instead

    Attributes
    ----------
    reason : the problem without the scheme's name
    """

    def __init__(self, scheme: str, reason: str, expected: str) -> None:
        self.reason = reason
        super().__init__(f"{scheme}: {reason}: expected {expected}")
