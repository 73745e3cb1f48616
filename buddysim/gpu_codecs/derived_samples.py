"""Samples derived from simulated ones: interpolated, and extrapolated to larger tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from buddysim.gpu_codecs.launch_surface import LaunchSurface
from buddysim.gpu_codecs.launch_times import STAGES, LaunchTimes
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import CodecSample
from buddysim.gpu_codecs.times import CodecTimeTable, times_of

#: Sizes of extrapolated samples: the largest that the CSWAP paper fits (Sec. IV-C).
FAR_BYTES = (500 * 2**20, 2000 * 2**20)


def interpolated_samples(samples: Sequence[CodecSample], launches: Sequence[LaunchShape]) -> list[CodecSample]:
    """Interpolate launches that were not simulated, at the most frequent tensor size and each of its sparsities.

    Parameters
    ----------
    samples : simulated samples of one codec in one layout on one machine
    """
    sizes = [sample.byte_count for sample in samples]
    size = max(sorted(set(sizes)), key=sizes.count)
    base = {(s.grid, s.block, s.sparsity): s for s in samples if s.byte_count == size}
    surfaces = {stage: LaunchSurface({key: getattr(s, stage) for key, s in base.items()}) for stage in STAGES}
    samples_between = []
    for like in {sample.sparsity: sample for sample in base.values()}.values():
        for launch in launches:
            key = (launch.grid, launch.block, like.sparsity)
            if key not in base:
                encode, sums, decode = (round(surfaces[stage].time_at(*key)) for stage in STAGES)
                samples_between.append(
                    replace(
                        like, grid=launch.grid, block=launch.block, encode_ps=encode, sums_ps=sums, decode_ps=decode,
                        origin="interpolated",
                    )
                )  # fmt: skip
    return samples_between


def extrapolated_samples(
    times: CodecTimeTable, like: CodecSample, launches: Sequence[LaunchShape]
) -> list[CodecSample]:
    """Extrapolate to larger tensors than were simulated, at a sample's sparsity."""
    return [times.sample_at(size, like.sparsity, launch) for size in FAR_BYTES for launch in launches]


def with_derived_samples(
    samples: Sequence[CodecSample], launches: Sequence[LaunchShape], far: Sequence[LaunchShape]
) -> list[CodecSample]:
    """Return the simulated samples of any codec, and the samples derived from them.

    Parameters
    ----------
    launches : launches that get samples at one size
    far : launches that get samples at the larger sizes
    """
    simulated = [sample for sample in samples if sample.origin == "simulated"]
    all_samples = list(simulated)
    for kind in sorted({(s.machine, s.codec, s.layout) for s in simulated}):
        own = [s for s in simulated if (s.machine, s.codec, s.layout) == kind]
        times = times_of(own)
        if isinstance(times, LaunchTimes):
            between = interpolated_samples(own, launches)
            all_samples += between
            times = times_of([*own, *between])
        all_samples += extrapolated_samples(times, min(own, key=lambda s: (abs(s.sparsity - 0.5), s)), far)
    return all_samples
