"""Counters of the parts of the machine: each with its definition and its value, next to what counts it.

A value is made of what the engine counted in a run: `ReplayEngine.counters`, and by the key ``numbers`` the machine's
numbers (`parameters.engine_numbers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from buddysim.replay.primitives.kinds import Queue


@dataclass(frozen=True)
class Counted:
    """A counter of a part.

    Attributes
    ----------
    definition : unit of its value, and one sentence that begins with a noun and stands alone: "B: Bytes that .."
    counted : the engine's name of it, or its value from all that the engine counted
    """

    definition: str
    counted: str | Callable[[Mapping[str, Any]], Any]

    def value(self, c: Mapping[str, Any]) -> Any:
        """The value in a run that counted `c`."""
        return c[self.counted] if isinstance(self.counted, str) else self.counted(c)


#: Counters of a part: heading of pages -> name -> counter.
PartCounters = Mapping[str, Mapping[str, Counted]]


def waits(queue: Queue, unit: str, what: str) -> Counted:
    """The histogram of the waits at a queue; its value is None where waits are not counted.

    Parameters
    ----------
    queue : the queue
    unit : what waits, in the plural
    what : what waits for what
    """
    counts = "element b counts 2^b to 2^(b+1) - 1 ps; null without `--queueing`"
    text = f"{unit}: Histogram of the waits of {what} ({counts})."
    return Counted(text, lambda c: c["waits"] and c["waits"][queue])


def utilization(what: str, value: Callable[[Mapping[str, Any]], float]) -> Counted:
    """The utilization of a resource, over all its units."""
    return Counted(f"fraction: Utilization of {what}, 0 to 1 of its peak over the simulated time.", value)


def busy_fraction(c: Mapping[str, Any], busy_ps: float, units: int = 1) -> float:
    """Return the fraction of the simulated time that units are busy, `busy_ps` in all."""
    return busy_ps / (units * max(1, int(c["now_ps"])))
