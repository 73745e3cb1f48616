"""The schedule of observed iterations of a training."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class SnapshotSchedule:
    """Observed iterations at equal distances, for a training of any length.

    If the number of iterations is known, `n_snapshots` of them are observed, from the first to the last. Otherwise
    every iteration is observed at first. Whenever there are twice as many snapshots as requested, every second one is
    dropped and the distance doubles.

    Parameters
    ----------
    n_snapshots : snapshots to keep
    steps : iterations of the training; None: unknown
    """

    n_snapshots: int
    steps: int | None = None
    distance: int = 1
    taken: list[int] = field(default_factory=list)

    def due(self, iteration: int) -> bool:
        """Whether an iteration is to be observed."""
        if self.steps is None or self.n_snapshots == 1:
            return iteration % self.distance == 0
        last = max(self.steps - 1, 0)
        return iteration in {round(number * last / (self.n_snapshots - 1)) for number in range(self.n_snapshots)}

    def took(self, iteration: int) -> list[int]:
        """Record a snapshot; return the snapshots to drop."""
        self.taken.append(iteration)
        if self.steps is not None or len(self.taken) < 2 * self.n_snapshots:
            return []
        self.distance *= 2
        dropped = [taken for taken in self.taken if taken % self.distance]
        self.taken = [taken for taken in self.taken if taken % self.distance == 0]
        return dropped
