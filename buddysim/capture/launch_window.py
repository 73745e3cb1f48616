"""The launches of a run that are traced, and the launches at which snapshots are taken if the run's length is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.ranges import parse_range

_CANDIDATES: Final = 4  # snapshots taken for each one that stays, at most
_MAX_DIGITS: Final = 12


@dataclass(frozen=True)
class LaunchWindow:
    """Launches by their number in the program's run, from 0.

    Attributes
    ----------
    first : the first one that is traced
    end : the one after the last; None: all to the end of the run
    """

    first: int
    end: int | None

    @classmethod
    def parse(cls, text: str) -> LaunchWindow:
        """``750:753``, ``750:``, ``:3`` or ``750``; a BuddysimError for anything else."""
        try:
            return cls(*parse_range(text, "launch", "750 or 750:753", _MAX_DIGITS))
        except ValueError as error:
            raise BuddysimError(f"{shortened(text)}: {error}") from None

    def __str__(self) -> str:
        return f"{self.first}:{'' if self.end is None else self.end}"

    def missing(self, launches: int) -> str | None:
        """The launches of the window that a run of this length lacks, as text; None if it has all."""
        expected = self.first + 1 if self.end is None else self.end
        if launches >= expected:
            return None
        return f"--launches {self} expects at least {expected} launches, the run has {launches}"


NOTHING: Final = LaunchWindow(1, 0)


@dataclass(frozen=True)
class CapturePlan:
    """Launches to trace and snapshots to take.

    Attributes
    ----------
    candidates : snapshots taken over a run of unknown length, of which fewer stay, at most
    window : the launches that are traced; None: all, without snapshots around them
    points : launches before each snapshot, where the length of the run is stated
    """

    candidates: int
    window: LaunchWindow | None = None
    points: tuple[int, ...] = ()


def plan_capture(snapshots: int, window: LaunchWindow | None, launches: int | None) -> CapturePlan:
    """Plan a capture with so many snapshots.

    Parameters
    ----------
    snapshots : how many are to stay
    window : the launches to trace; None: all
    launches : of the run, where it is stated; None: unknown

    Raises
    ------
    BuddysimError
        where a run of the stated length lacks launches of the window
    """
    if launches is None:
        return CapturePlan(_CANDIDATES * snapshots, window)
    if window is not None and (missing := window.missing(launches)):
        raise BuddysimError(f"{missing} (--total-launches)")
    points = equidistant_launches(launches, snapshots) if snapshots else ()
    return CapturePlan(len(points), window, points)


def equidistant_launches(launches: int, snapshots: int) -> tuple[int, ...]:
    """Launches before each snapshot of a run of `launches`, from its beginning to its end at equal distances."""
    if snapshots == 1:
        return (launches,)
    intervals = snapshots - 1
    return tuple(sorted({(2 * number * launches + intervals) // (2 * intervals) for number in range(snapshots)}))
