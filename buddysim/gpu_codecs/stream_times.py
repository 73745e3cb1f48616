"""Times of a codec whose work-items each process one run of words, of lengths that double (CSR, chunked).

A run consists of whole units, and the words of a unit are a power of two. So a slightly larger tensor either keeps its
runs more work-items busy, or has runs twice as long on half of the work-items. The time of a tensor is the length of a
run times the time per word. The time per word depends on the number of busy work-items, which compete for caches, and
on whether a run fits in a cache line. The time of the prefix sums depends on the number of units.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from buddysim.gpu_codecs.interpolation import interpolate
from buddysim.gpu_codecs.launch_times import LaunchTimes
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import CodecSample

_LINE_WORDS = 32


@dataclass(frozen=True, eq=False)
class StreamTimes(LaunchTimes):
    """Times of one codec on one machine.

    Parameters
    ----------
    chunks : returns words of a unit and units of a run, from words and a launch
    """

    chunks: Callable[[int, LaunchShape], tuple[int, int]]

    def _stage(self, stage: str, byte_count: int, sparsity: float, launch: LaunchShape) -> float:
        first = self._base[0].byte_count
        if byte_count == first:
            return super()._stage(stage, byte_count, sparsity, launch)
        units, busy, run = self._runs(byte_count, launch)
        if stage == "sums_ps":
            return max(0.0, interpolate(self._sums, float(units)))
        usual = self._reference[0].sparsity
        sparser = super()._stage(stage, first, sparsity, launch) / super()._stage(stage, first, usual, launch)
        return run * self._pace(stage, busy, run) * sparser

    def _pace(self, stage: str, busy: int, run: int) -> float:
        """Time per word of a run; beyond the simulated number of work-items, the throughput in words is constant."""
        paces = self._paces[stage, run <= _LINE_WORDS]
        more = max(0.0, math.log(busy) - paces[-1][0])
        return math.exp(interpolate(paces, math.log(busy), beyond=False) + more)

    def _runs(self, byte_count: int, launch: LaunchShape) -> tuple[int, int, int]:
        """Return the number of units, of work-items with a run, and of words of a run."""
        words = -(-byte_count // 4)
        unit, per = self.chunks(words, launch)
        units = -(-words // unit)
        return units, -(-units // per), unit * per

    @cached_property
    def _reference(self) -> tuple[CodecSample, ...]:
        """Simulated samples at the most frequent sparsity."""
        simulated = [sample for sample in self.samples if sample.origin == "simulated"]
        sparsities = [sample.sparsity for sample in simulated]
        usual = max(sorted(set(sparsities)), key=sparsities.count)
        return tuple(sample for sample in simulated if sample.sparsity == usual)

    @cached_property
    def _sums(self) -> list[tuple[float, float]]:
        """Time of the prefix sums by units, independent of the sparsity; the mean of several samples."""
        return _means((float(self._runs(s.byte_count, _launch(s))[0]), float(s.sums_ps)) for s in self._reference)

    @cached_property
    def _paces(self) -> dict[tuple[str, bool], list[tuple[float, float]]]:
        """Logarithm of the time per word by that of busy work-items, by stage and whether a run is a cache line.

        With fewer busy work-items than in the simulations of line-long runs, the length of a run has no effect.
        """
        paces = {}
        for stage in ("encode_ps", "decode_ps"):
            by_kind: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
            for sample in self._reference:
                _, busy, run = self._runs(sample.byte_count, _launch(sample))
                by_kind[run <= _LINE_WORDS].append((math.log(busy), math.log(getattr(sample, stage) / run)))
            min_log_items = min((busy for busy, _ in by_kind[True]), default=math.inf)
            longer = [point for point in by_kind[False] if point[0] < min_log_items]
            paces[stage, False] = _means(by_kind[False])
            paces[stage, True] = _means([*longer, *by_kind[True]])
        return paces


def _launch(sample: CodecSample) -> LaunchShape:
    return LaunchShape(sample.grid, sample.block)


def _means(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points in ascending order, with the mean of the points at one position."""
    by_x: defaultdict[float, list[float]] = defaultdict(list)
    for x, y in points:
        by_x[x].append(y)
    return [(x, fmean(ys)) for x, ys in sorted(by_x.items())]
