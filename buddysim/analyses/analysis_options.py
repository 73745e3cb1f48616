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
    machine : that replays run on, its name, or its path
    threshold : Buddy Threshold
    thresholds : those of a study of it; 1 is no bound ("best achievable")
    metadata_sizes : bytes of the metadata cache per slice
    metadata_lines : bytes of its lines
    profile_from : path of the trace that targets are chosen on, of another input of the same program; None: the trace
        itself
    partial : accept trace files whose end is missing

    Raises
    ------
    BuddysimError
        for an unknown compressor, or a number that no machine takes
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
        """The first compressor."""
        return self.compressors[0]

    @property
    def loaded_machine(self) -> Machine:
        """The machine."""
        return self.machine if isinstance(self.machine, Machine) else Machine.load(self.machine)

    def profile(self, threshold: float | None = None, policy: str = ProfileOptions.policy) -> ProfileOptions:
        """How targets are chosen."""
        threshold = self.threshold if threshold is None else threshold
        return ProfileOptions(threshold=threshold, policy=policy, compressor=self.compressor)
