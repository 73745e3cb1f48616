"""The rows of the file that ships beside those that were simulated: between them, and for larger tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from buddysim.gpu_codecs.launch_surface import LaunchSurface
from buddysim.gpu_codecs.launch_times import STAGES, LaunchTimes
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import CodecSample
from buddysim.gpu_codecs.times import CodecTimeTable, times_of

#: Sizes to which times are extrapolated for the reader: the largest that the CSWAP paper fits (Sec. IV-C).
FAR_BYTES = (500 * 2**20, 2000 * 2**20)


def interpolated_samples(samples: Sequence[CodecSample], launches: Sequence[LaunchShape]) -> list[CodecSample]:
    """Launches that weren't simulated with a tensor of the size that most were, at each sparsity of it.

    Parameters
    ----------
    samples : simulated, of one codec in one layout on one machine
    """
    sizes = [sample.byte_count for sample in samples]
    size = max(sorted(set(sizes)), key=sizes.count)
    base = {(s.grid, s.block, s.sparsity): s for s in samples if s.byte_count == size}
    surfaces = {stage: LaunchSurface({key: getattr(s, stage) for key, s in base.items()}) for stage in STAGES}
    found = []
    for like in {sample.sparsity: sample for sample in base.values()}.values():
        for launch in launches:
            key = (launch.grid, launch.block, like.sparsity)
            if key not in base:
                encode, sums, decode = (round(surfaces[stage].at(*key)) for stage in STAGES)
                found.append(
                    replace(
                        like, grid=launch.grid, block=launch.block, encode_ps=encode, sums_ps=sums, decode_ps=decode,
                        origin="interpolated",
                    )
                )  # fmt: skip
    return found


def extrapolated_samples(
    times: CodecTimeTable, like: CodecSample, launches: Sequence[LaunchShape]
) -> list[CodecSample]:
    """Larger tensors of a sample's sparsity than were simulated."""
    return [times.at(size, like.sparsity, launch) for size in FAR_BYTES for launch in launches]


def with_derived_samples(
    samples: Sequence[CodecSample], launches: Sequence[LaunchShape], far: Sequence[LaunchShape]
) -> list[CodecSample]:
    """The samples that were simulated, of any codec, and all that is told from them.

    Parameters
    ----------
    launches : that there are times of at one size
    far : that there are times of at the larger sizes
    """
    simulated = [sample for sample in samples if sample.origin == "simulated"]
    found = list(simulated)
    for kind in sorted({(s.machine, s.codec, s.layout) for s in simulated}):
        own = [s for s in simulated if (s.machine, s.codec, s.layout) == kind]
        times = times_of(own)
        if isinstance(times, LaunchTimes):
            between = interpolated_samples(own, launches)
            found += between
            times = times_of([*own, *between])
        found += extrapolated_samples(times, min(own, key=lambda s: (abs(s.sparsity - 0.5), s)), far)
    return found
