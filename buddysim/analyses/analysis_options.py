"""Options of analyses: one set for every analysis."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.buddy import ProfileOptions
from buddysim.compress import DEFAULT
from buddysim.compress.compressors import find_for_entries, joined
from buddysim.machine import Machine

KIB = 1024


@dataclass(frozen=True)
class AnalysisOptions:
    """Options of an analysis, checked on construction.

    Attributes
    ----------
    compressors : names of the compressors of memory-entries; where an analysis takes one, the first
    machine : machine of replays, its name, or its path
    threshold : Buddy Threshold
    thresholds : Buddy Thresholds of the analysis over thresholds; 1 is no bound ("best achievable")
    metadata_sizes : bytes of the metadata cache per slice
    metadata_lines : bytes of the metadata cache's lines
    profile_from : path of a trace of another input of the same program, on which targets are chosen; None: the trace
        itself
    partial : accept trace files whose end is missing

    Raises
    ------
    BuddysimError
        if a compressor is unknown, or a number is out of range
    """

    compressors: tuple[str, ...] = (DEFAULT,)
    machine: Machine | str = "p100-nvlink2"
    threshold: float = ProfileOptions.threshold
    thresholds: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 1.0)
    metadata_sizes: tuple[int, ...] = tuple(KIB << step for step in range(7))
    metadata_lines: tuple[int, ...] = (32, 128)
    profile_from: str | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        for name in self.compressors:
            for part in joined(name):
                find_for_entries(part)
        if not self.compressors:
            raise BuddysimError("compressors: expected one or more")
        for threshold in (self.threshold, *self.thresholds):
            ProfileOptions(threshold=threshold)
        for size in (*self.metadata_sizes, *self.metadata_lines):
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise BuddysimError(f"metadata cache: {shortened(size)}: expected a number of bytes")

    @property
    def compressor(self) -> str:
        """Return the first compressor."""
        return self.compressors[0]

    @property
    def loaded_machine(self) -> Machine:
        """Return the machine."""
        return self.machine if isinstance(self.machine, Machine) else Machine.load(self.machine)

    def profile(self, threshold: float | None = None, policy: str = ProfileOptions.policy) -> ProfileOptions:
        """Return the options by which targets are chosen."""
        threshold = self.threshold if threshold is None else threshold
        return ProfileOptions(threshold=threshold, policy=policy, compressor=self.compressor)
