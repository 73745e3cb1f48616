"""Times of a codec's kernels on a machine: the bundled samples, and times derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Protocol

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.gpu_codecs import LAYOUTS, REGISTRY
from buddysim.gpu_codecs.block_times import BlockTimes
from buddysim.gpu_codecs.launch_times import LaunchTimes
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import SHIPPED, CodecSample, read_samples
from buddysim.gpu_codecs.stream_times import StreamTimes


class CodecTimeTable(Protocol):
    """The times of one codec in one layout on one machine."""

    def sample_at(self, byte_count: int, sparsity: float, launch: LaunchShape) -> CodecSample:
        """Return the times of a tensor."""

    def best_launch(self, byte_count: int, sparsity: float) -> LaunchShape:
        """Return the launch with the least time of both directions."""


@cache
def shipped_samples() -> tuple[CodecSample, ...]:
    """Return the bundled samples, without the extrapolated ones."""
    return tuple(sample for sample in read_samples(str(SHIPPED)) if sample.origin != "extrapolated")


@cache
def codec_times(machine: str, codec: str, layout: str) -> CodecTimeTable:
    """Return the bundled times of one codec in one layout on one machine.

    Raises
    ------
    BuddysimError
        if this combination was not simulated
    """
    if layout not in LAYOUTS:
        raise BuddysimError(f"codec_kernels {shortened(layout)}: unknown: expected one of {', '.join(LAYOUTS)}")
    if layout not in (has := REGISTRY.find(codec).LAYOUTS):
        raise BuddysimError(f"codec_kernels {layout}: not of codec {codec}: expected one of {', '.join(has)}")
    samples = tuple(s for s in shipped_samples() if (s.machine, s.codec, s.layout) == (machine, codec, layout))
    if not samples:
        known = _names(s.machine for s in shipped_samples() if (s.codec, s.layout) == (codec, layout))
        raise BuddysimError(f"{codec}, {layout}, on {machine}: not simulated: expected one of {known}")
    return times_of(samples)


def times_of(samples: Sequence[CodecSample]) -> CodecTimeTable:
    """Return the times derived from samples of one codec in one layout on one machine."""
    own, codec = tuple(samples), REGISTRY.find(samples[0].codec)
    if hasattr(codec, "BLOCK"):
        return BlockTimes(own, codec.BLOCK)
    if samples[0].layout == "chunked" and hasattr(codec, "chunks"):
        return StreamTimes(own, codec.chunks)
    return LaunchTimes(own)


def simulated_machines(codec: str, layout: str) -> tuple[str, ...]:
    """Return the machines on which a codec was simulated."""
    return tuple(sorted({s.machine for s in shipped_samples() if (s.codec, s.layout) == (codec, layout)}))


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or "none"
