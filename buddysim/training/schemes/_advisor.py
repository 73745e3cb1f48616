"""CSWAP's execution advisor (Chen et al., CLUSTER 2021, Sec. IV-B): is a tensor worth compressing?

It compares what swapping costs beyond the computations that hide it, with compression (T) and without (T'). Hidden_f
is the forward time of the layer that consumes the tensor, Hidden_b the backward time of the layer during which it comes
back, the one before its consumer in backward order (Fig. 2). Both are read off the iteration without compression, as
the paper's profiler takes them from the first iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buddysim.training.iteration.plan import Plan
from buddysim.training.iteration.stash_steps import link_ps

if TYPE_CHECKING:
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.cost import CostModel
    from buddysim.training.iteration.program import Program
    from buddysim.training.networks.graph import Network


@dataclass(frozen=True)
class HidingTime:
    """Computation that a tensor's copies overlap with, in picoseconds."""

    forward_ps: int
    backward_ps: int


@dataclass(frozen=True)
class Advice:
    """Exposed time of swapping a tensor, with compression and without, in picoseconds."""

    compressed_ps: float
    plain_ps: float

    @property
    def compress(self) -> bool:
        """Whether compression pays."""
        return self.compressed_ps < self.plain_ps


@dataclass(frozen=True)
class CopyTimes:
    """The times of a tensor's copies to the host and back, in picoseconds."""

    offload_ps: float
    prefetch_ps: float


def paper_advice(byte_count: int, sparsity: float, codec_ps: float, hidden: HidingTime, link: HostLinkConfig) -> Advice:
    """The paper's rule: ``S (1 - sparsity)`` compressed bytes, and a link with a bandwidth alone (equations 1 to 4).

    Parameters
    ----------
    codec_ps : predicted time of compression and decompression
    """

    def copies(moved: float) -> CopyTimes:
        return CopyTimes(moved * 1e12 / link.offload_bytes_per_s, moved * 1e12 / link.prefetch_bytes_per_s)

    return advice(copies(byte_count * (1 - sparsity)), copies(byte_count), codec_ps, hidden)


def exact_advice(
    byte_count: int, encoded_bytes: int, codec_ps: float, hidden: HidingTime, link: HostLinkConfig
) -> Advice:
    """With the bytes that are stored and the copies' times on the timeline."""

    def copies(moved: int) -> CopyTimes:
        return CopyTimes(link_ps(link, "offload", moved), link_ps(link, "prefetch", moved))

    return advice(copies(encoded_bytes), copies(byte_count), codec_ps, hidden)


def advice(code: CopyTimes, plain: CopyTimes, codec_ps: float, hidden: HidingTime) -> Advice:
    """Equations 1 and 2."""
    return Advice(codec_ps + _exposed_ps(code, hidden), _exposed_ps(plain, hidden))


def _exposed_ps(copies: CopyTimes, hidden: HidingTime) -> float:
    forward = max(copies.offload_ps - hidden.forward_ps, 0)
    return forward + max(copies.prefetch_ps - hidden.backward_ps, 0)


def measure_hiding_times(
    network: Network, batch: int, cost: CostModel, plan: Plan, link: HostLinkConfig
) -> dict[int, HidingTime]:
    """Return the computation that hides the copies of each offloaded tensor, by the layer that owns it."""
    from buddysim.training.iteration.build import build

    program = build(network, batch, cost, plan, link)
    forward = _hiding(program, "offload")
    backward = _hiding(program, "prefetch")
    return {
        owner: HidingTime(forward.get(layer, 0), backward.get(layer, 0))
        for owner in plan.stash
        if (layer := network.last_consumer(owner)) in forward
    }


def _hiding(program: Program, stream: str) -> Mapping[int, int]:
    """Computation of the step that a copy overlaps with, by the layer whose X is copied."""
    hidden_ps = {}
    for step in program.steps:
        for task in (program.tasks[number] for number in step.tasks):
            if task.stream == stream:
                hidden_ps[task.layer] = step.compute_ps if task.timing == "overlapped" else 0
    return hidden_ps
