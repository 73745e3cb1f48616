"""The case study of training: footprints, images per second, and speedup of a larger minibatch (Fig. 13).

Footprints are those of `baseline-p`, speeds the oracle's. The ratio of a network, and how much Buddy Compression
slows it down at 150 GB/s, are those of its trace in the study; the larger minibatch is the largest that fits.
"""

from __future__ import annotations

from functools import cache

from buddysim.machine.training import TrainingMachine
from buddysim.papers.buddy.buddy_study import BuddyStudy, paper_names
from buddysim.papers.buddy.means import arithmetic
from buddysim.papers.buddy.performance_numbers import performance
from buddysim.papers.buddy.target_numbers import policy_value
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import Result
from buddysim.training.cost import CostModel
from buddysim.training.fit_check import FitChecks
from buddysim.training.named_network import load_network
from buddysim.training.request import make_options
from buddysim.training.search import largest_batch

MACHINE = "titan-xp"
GIB = 2**30
#: Networks of the zoo by the workloads' names.
NETWORKS = {
    "biglstm": "big-lstm", "alexnet": "alexnet", "inception_v2": "bn-inception", "squeezenet": "squeezenet",
    "vgg16": "vgg16", "resnet50": "resnet50",
}  # fmt: skip
BATCHES = (4, 8, 16, 32, 64, 96, 128, 256, 512)
_MAX_BATCH = 4096


def footprint_gib(study: BuddyStudy, name: str, batch: int) -> float:
    """Memory of an iteration with everything on the GPU."""
    return float(_trained(study, name, batch, "baseline-p")["memory.baseline_bytes"] / GIB)


def samples_per_s(study: BuddyStudy, name: str, batch: int) -> float:
    """Speed of a GPU with as much memory as it takes."""
    return float(1000 * batch / _trained(study, name, batch, "oracle")["time_ms"])


def _trained(study: BuddyStudy, name: str, batch: int, scheme: str) -> Result:
    return study.results.result(NETWORKS[name], batch, scheme, MACHINE)


@cache
def largest(name: str, ratio: float) -> int:
    """Return the largest minibatch that fits `ratio` times the memory; 0: none."""
    machine = TrainingMachine.load(MACHINE)
    options = make_options(memory_bytes=int(machine.memory_bytes * ratio))
    checks = FitChecks(load_network(NETWORKS[name]), machine, CostModel.load(machine), "baseline-p", options)
    return largest_batch(checks, _MAX_BATCH)


def larger_batch(study: BuddyStudy, name: str) -> tuple[float, int, int, float] | None:
    """Ratio, largest minibatch without and with Buddy Compression, and the speed-up in per cent, less its slowdown.

    None where the store lacks the network's trace, or nothing fits without Buddy Compression.
    """
    ratio, relative_performance = policy_value(study, name, "final", "ratio"), performance(study, name, "buddy")
    if ratio is None or relative_performance is None:
        return None
    before, after = largest(name, 1.0), largest(name, ratio)
    if not before:
        return None
    gain = samples_per_s(study, name, after) * min(relative_performance, 1.0) / samples_per_s(study, name, before)
    return ratio, before, after, 100 * (gain - 1)


def transition(name: str) -> int:
    """Return the minibatch from which on the growing memory exceeds the constant memory."""
    machine = TrainingMachine.load(MACHINE)
    network = load_network(NETWORKS[name])
    fixed = 2 * network.parameter_bytes()
    checks = FitChecks(network, machine, CostModel.load(machine), "baseline-p", make_options())
    one, two = (checks.plan(batch).allocator.min_bytes(checks.planned(batch)[1]) for batch in (32, 64))
    sample = (two - one) / 32
    return max(1, round(fixed / sample))


_CAUSE = (
    "the cost model's kernels are nearly as fast at the smaller minibatch; the simulated network's memory "
    "compresses less than the paper's, so that fewer samples more fit"
)
_FOOTPRINTS = (
    "the paper's footprints are PyTorch's on a Titan Xp; the simulated ones are an iteration's tensors in one pool, "
    "without the unknown additional memory that the framework reserves"
)
_BIGLSTM = (
    "weights and their gradients of the simulated BigLSTM, of 793,471 words, take over 12 GB; the paper's takes 2.71 "
    "GB in all"
)


@simulates("buddy-fig13-memory")
def memory(study: BuddyStudy) -> SimulatedValue:
    return SimulatedValue(TrainingMachine.load(MACHINE).memory_bytes / GIB)


@simulates("buddy-alexnet-transition", "buddy-other-transition")
def transitions(study: BuddyStudy, id: str) -> SimulatedValue:
    if id == "buddy-alexnet-transition":
        return SimulatedValue(
            float(transition("alexnet")), cause="of one tower, with the fastest algorithms' workspace"
        )
    by_workload = {name: transition(name) for name in NETWORKS if name != "alexnet"}
    largest_name = max(by_workload, key=lambda name: by_workload[name])
    note = ", ".join(f"{name} {batch}" for name, batch in by_workload.items())
    return SimulatedValue(float(by_workload[largest_name]), note, _BIGLSTM if largest_name == "biglstm" else "")


@simulates("buddy-plateau")
def plateau(study: BuddyStudy) -> SimulatedValue:
    gains, holds = {}, True
    for name in NETWORKS:
        speeds = [samples_per_s(study, name, batch) for batch in (8, 16, 256, 512)]
        first, last = speeds[1] / speeds[0] - 1, speeds[3] / speeds[2] - 1
        gains[name] = f"{name} {100 * first:.0f} and {100 * last:.0f} %"
        holds &= last < first
    note = f"gained from 8 to 16, and from 256 to 512: {', '.join(gains.values())}"
    return SimulatedValue("plateaus" if holds else "grows on", note)


@simulates("buddy-dl-speedup", "buddy-biglstm-speedup", "buddy-vgg16-speedup")
def speedups(study: BuddyStudy, id: str) -> SimulatedValue:
    names = list(NETWORKS) if id == "buddy-dl-speedup" else [id.split("-")[1]]
    by_workload = {name: larger_batch(study, name) for name in names}
    note = ", ".join(
        f"{name} {one[3]:.1f} % ({one[0]:.2f}x: {one[1]} to {one[2]} samples)" if one else f"{name}: none"
        for name, one in by_workload.items()
    )
    known = [one[3] for one in by_workload.values() if one is not None]
    fitting = [name for name in names if largest(name, 1.0)]
    if not fitting:
        return SimulatedValue("not one sample fits", note, _BIGLSTM)
    if len(known) < len(fitting):
        return SimulatedValue(None, note)
    return SimulatedValue(arithmetic(known), note, f"{_CAUSE}; {_BIGLSTM}" if len(names) > 1 else _CAUSE)


@simulates("buddy-below-64")
def below_64(study: BuddyStudy) -> SimulatedValue:
    by_workload = {name: largest(name, 1.0) for name in NETWORKS}
    text = ", ".join(paper_names()[name] for name, batch in by_workload.items() if batch < 64)
    note = ", ".join(f"{name} {batch}" for name, batch in by_workload.items())
    return SimulatedValue(text or "none", f"largest minibatches: {note}", _FOOTPRINTS)
