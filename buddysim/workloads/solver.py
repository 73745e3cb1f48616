"""What a program of the study states before it runs, and what it does on a device."""

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
    """An array on the device: elements, and of which type."""

    elements: int
    dtype: DTypeLike = np.float64

    @property
    def bytes(self) -> int:
        return self.elements * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class SolutionCheck:
    """A number that the program computed, and the right one.

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
        return bool(self.error <= self.tolerance)  # false for NaN

    def __str__(self) -> str:
        return (
            f"{self.what} = {self.value:.13g}, expected {self.expected:.13g} ({self.source}): "
            f"error {self.error:.2g}, allowed {self.tolerance:.2g}"
        )


class Solver(ABC):
    """A problem and its solution in equal steps.

    A run is `set_up`, then `step` for each of `steps`, then `close`, then `verify`. All that concerns the run as a
    whole is stated before it: arrays, launches, costs. The number of launches is compared with the statement after
    every step.

    Parameters
    ----------
    problem : a frozen dataclass of the workload: sizes, steps, seed
    """

    #: The OpenCL sources, compiled as one: files, or the text itself.
    sources: tuple[Path | str, ...] = ()

    def __init__(self, problem: Any) -> None:
        self.problem = problem

    @property
    @abstractmethod
    def arrays(self) -> Mapping[str, Array]:
        """What is allocated on the device, in this order, all at the beginning."""

    @property
    def constants(self) -> Mapping[str, int | float]:
        """What the sources are compiled with, ``-D NAME=VALUE``."""
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
        """About how many warp memory instructions the launches of `window` make."""

    @property
    @abstractmethod
    def native_seconds(self) -> float:
        """About how much processor time the run takes without its traced launches, on a core of 2.6 GHz."""

    @property
    def host_bytes(self) -> int:
        """Memory that the program needs in addition to its arrays on the device."""
        return 0

    @property
    def launches(self) -> int:
        """Launches of the whole run."""
        return self.setup_launches + self.steps * self.step_launches + self.closing_launches

    def work(self, launches: int) -> float:
        """How much of the run its first so many launches are, in any unit: what snapshots are equally spaced in."""
        return launches

    @property
    def window(self) -> tuple[int, int]:
        """The launches that are traced, the end not included: by default those of the step halfway through the run."""
        first = self.setup_launches + self.steps // 2 * self.step_launches
        return first, first + self.step_launches

    @property
    def snapshot_points(self) -> tuple[int, ...]:
        """Launches before each of the snapshots: after every tenth of the steps, at the end of the nearest one.

        Runs of fewer steps than snapshots have them after every tenth of their launches.
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
        """After the last step: what else the program does."""

    @abstractmethod
    def verify(self, device: Device) -> list[SolutionCheck]:
        """After the last step: what shows that the program solved its problem."""


def _nearest(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)
