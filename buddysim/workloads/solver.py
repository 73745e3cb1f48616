"""Interface of the OpenCL workloads: a solver with its arrays, launches and verification."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from buddysim.workloads.device import Device

SNAPSHOTS = 10


@dataclass(frozen=True)
class Array:
    """An array on the device: number of elements, and their type."""

    elements: int
    dtype: DTypeLike = np.float64

    @property
    def bytes(self) -> int:
        return self.elements * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class SolutionCheck:
    """A check of the verification: a computed number and its expected value.

    Attributes
    ----------
    tolerance : the largest error that passes, relative to `expected` (absolute where that is 0)
    source : where `expected` comes from
    """

    what: str
    value: float
    expected: float
    tolerance: float
    source: str

    @property
    def error(self) -> float:
        return abs(self.value - self.expected) / (abs(self.expected) or 1.0)

    @property
    def passed(self) -> bool:
        return bool(self.error <= self.tolerance)  # False for NaN

    def __str__(self) -> str:
        return (
            f"{self.what} = {self.value:.13g}, expected {self.expected:.13g} ({self.source}): "
            f"error {self.error:.2g}, allowed {self.tolerance:.2g}"
        )


class Solver(ABC):
    """A problem and its solution in equal steps.

    A run is `set_up`, then `step` for each of `steps`, then `close`, then `verify`. Arrays, launches and costs of the
    run are known before it starts. The number of launches is checked after every step.

    Parameters
    ----------
    problem : a frozen dataclass of the workload: sizes, steps, seed
    """

    #: The OpenCL sources, compiled together: paths of files, or text.
    sources: tuple[Path | str, ...] = ()

    def __init__(self, problem: Any) -> None:
        self.problem = problem

    @property
    @abstractmethod
    def arrays(self) -> Mapping[str, Array]:
        """Arrays on the device in the order of their allocation, all at the beginning."""

    @property
    def constants(self) -> Mapping[str, int | float]:
        """Macros for the compiler, ``-D NAME=VALUE``."""
        return {}

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps of the run."""

    @property
    @abstractmethod
    def setup_launches(self) -> int:
        """Launches of `set_up`."""

    @property
    @abstractmethod
    def step_launches(self) -> int:
        """Launches of each step."""

    @property
    def closing_launches(self) -> int:
        """Launches of `close`."""
        return 0

    @property
    @abstractmethod
    def traced_operations(self) -> int:
        """Approximate number of warp memory instructions in the launches of `window`."""

    @property
    @abstractmethod
    def native_seconds(self) -> float:
        """Approximate processor time of the run without its traced launches, on a core of 2.6 GHz."""

    @property
    def host_bytes(self) -> int:
        """Memory that the program needs in addition to its arrays on the device."""
        return 0

    @property
    def launches(self) -> int:
        """Launches of the whole run."""
        return self.setup_launches + self.steps * self.step_launches + self.closing_launches

    def work(self, launches: int) -> float:
        """Return the work of the first launches, in any unit; snapshots are equally spaced in it."""
        return launches

    @property
    def window(self) -> tuple[int, int]:
        """Traced launches, END not included: by default those of the middle step."""
        first = self.setup_launches + self.steps // 2 * self.step_launches
        return first, first + self.step_launches

    @property
    def snapshot_points(self) -> tuple[int, ...]:
        """Launches before each snapshot: after every tenth of the steps, at the end of the nearest step.

        A run with fewer steps than snapshots has them after every tenth of its launches.
        """
        tenths = range(1, SNAPSHOTS + 1)
        if self.steps < SNAPSHOTS:
            return tuple(sorted({_nearest(tenth * self.launches, SNAPSHOTS) for tenth in tenths}))
        ends = (_nearest(tenth * self.steps, SNAPSHOTS) for tenth in tenths)
        return tuple(self.setup_launches + end * self.step_launches for end in ends)

    @property
    def device_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.bytes for array in self.arrays.values())

    @abstractmethod
    def set_up(self, device: Device) -> None:
        """Bring the arrays into the state before the first step."""

    @abstractmethod
    def step(self, device: Device, number: int) -> None:
        """Make one step; they are numbered from 0."""

    def close(self, device: Device) -> None:  # noqa: B027 most programs do nothing more
        """Do the program's work after the last step."""

    @abstractmethod
    def verify(self, device: Device) -> list[SolutionCheck]:
        """Return the checks of the solution, after the last step."""


def _nearest(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)
