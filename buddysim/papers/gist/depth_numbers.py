"""Larger minibatches of deep residual networks (Gist, Section V-G and Fig. 16)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from buddysim.papers.gist.paper_networks import LIBRARY, OFFERED, setting
from buddysim.papers.reported_values import reported_value
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.iteration.build import build
from buddysim.training.iteration.plan import Plan
from buddysim.training.iteration.program import Program
from buddysim.training.iteration.schedule import schedule
from buddysim.training.named_network import load_network
from buddysim.training.request import make_options
from buddysim.training.schemes import gist

DEPTHS = (509, 851, 1202)
SCHEMES = ("gist-base", "gist-fp16")
_TRIED = 32


@dataclass(frozen=True)
class LargestBatch:
    """The largest minibatch that fits, and the time of a sample in it."""

    batch: int
    sample_ps: float


@cache
def largest(depth: int, scheme: str) -> LargestBatch:
    """Return the largest minibatch of one network under a scheme; densities are those of the shipped measurement.

    The bytes of groups, without the weights, grow in proportion to the minibatch. One minibatch therefore gives the
    bytes of a sample; 1 MiB is reserved for payloads rounded up to bytes.
    """
    machine, cost = setting()
    network, options = load_network(f"resnet{depth}"), make_options(conv_library=LIBRARY)

    def planned(batch: int) -> tuple[Plan, Program]:
        plan = gist.plan(network, batch, machine, cost, scheme, options)
        return plan, build(network, batch, cost, plan, machine.link_rate)

    weights = 2 * network.parameter_bytes()
    plan, program = planned(_TRIED)
    sample = (plan.allocator.min_bytes(program) - weights) / _TRIED + network.output_bytes(0, 1)  # the reader's image
    batch = int((OFFERED - weights - network.parameter_bytes() - 2**20) / sample)  # momentum
    return LargestBatch(batch, schedule(planned(batch)[1]).time_ps / batch)


def speedup_percent(depth: int) -> float:
    """Return the speedup of training a sample in the larger minibatch, per cent."""
    base, encoded = (largest(depth, scheme) for scheme in SCHEMES)
    return 100 * (base.sample_ps / encoded.sample_ps - 1)


def batches_text() -> str:
    """``ResNet-509 620 -> 1180, ...``."""
    return ", ".join(
        f"ResNet-{depth} " + " -> ".join(f"{largest(depth, scheme).batch:,}" for scheme in SCHEMES) for depth in DEPTHS
    )


@simulates("resnet1202-speedup")
def resnet1202(training: SavedResults) -> SimulatedValue:
    text = ", ".join(f"ResNet-{depth} {speedup_percent(depth):.1f}" for depth in DEPTHS)
    return SimulatedValue(
        speedup_percent(1202),
        note=f"FP16, the safest format; {text}; minibatches {batches_text()}",
        cause=cause(),
    )


@simulates("resnet-order")
def resnet_order(training: SavedResults) -> SimulatedValue:
    speedups = [speedup_percent(depth) for depth in DEPTHS]
    grows = speedups == sorted(speedups) and speedups[0] > 0
    text = (
        str(reported_value("resnet-order"))
        if grows
        else "grows, but is no speedup"
        if speedups == sorted(speedups)
        else "falls"
    )
    return SimulatedValue(text, note=", ".join(f"{amount:.1f}" for amount in speedups), cause=cause())


def cause() -> str:
    """Why larger minibatches are no faster here."""
    base = largest(1202, SCHEMES[0])
    return (
        f"the simulated baseline already fits {base.batch} samples of ResNet-1202, where the cost model's kernels "
        "are as busy as "
        "with more, and encodings cost time; with the few samples that CNTK fitted, launching some ten thousand "
        "kernels would weigh more"
    )
