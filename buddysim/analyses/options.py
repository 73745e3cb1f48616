"""How traces are analysed: one set of options for every analysis."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.buddy import ProfileOptions
from buddysim.compress import DEFAULT
from buddysim.compress.registry import find_for_entries

KIB = 1024


@dataclass(frozen=True)
class Options:
    """Everything besides the trace that analyses depend on; checked when made.

    Attributes
    ----------
    compressors : names of the compressors of memory-entries; where an analysis takes one, the first
    machine : name or path of the machine that replays run on
    threshold : Buddy Threshold
    thresholds : those of a study of it; 1 is no bound ("best achievable")
    metadata_sizes : bytes of the metadata cache per slice
    metadata_lines : bytes of its lines

    Raises
    ------
    BuddysimError
        for an unknown compressor, or a number that no machine takes
    """

    compressors: tuple[str, ...] = (DEFAULT,)
    machine: str = "p100-nvlink2"
    threshold: float = ProfileOptions.threshold
    thresholds: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 1.0)
    metadata_sizes: tuple[int, ...] = tuple(KIB << step for step in range(7))
    metadata_lines: tuple[int, ...] = (32, 128)

    def __post_init__(self) -> None:
        for name in self.compressors:
            find_for_entries(name)
        if not self.compressors:
            raise BuddysimError("compressors: expected one or more")
        for share in (self.threshold, *self.thresholds):
            ProfileOptions(threshold=share)
        for size in (*self.metadata_sizes, *self.metadata_lines):
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise BuddysimError(f"metadata cache: {shortened(size)}: expected a number of bytes")

    @property
    def compressor(self) -> str:
        """The first compressor."""
        return self.compressors[0]

    def profile(self, threshold: float | None = None, policy: str = ProfileOptions.policy) -> ProfileOptions:
        """How targets are chosen."""
        chosen = self.threshold if threshold is None else threshold
        return ProfileOptions(threshold=chosen, policy=policy, algorithm=self.compressor)
