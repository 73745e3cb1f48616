"""Makes the trace of a network in training."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import replace
from types import ModuleType
from typing import Final

from buddysim.base.errors import BuddysimError
from buddysim.base.extras import INSTALL_TORCH
from buddysim.base.output import Output
from buddysim.base.terminal import say
from buddysim.capture.torch.access.graph_accesses import ASSUMED
from buddysim.trace import Provenance, TraceWriter
from buddysim.workloads.needs import Needs
from buddysim.workloads.solver import SNAPSHOTS, SolutionCheck
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem

MODELLED: Final = dict(ASSUMED["kernels"]) | {
    "allocations": (
        "the segments of PyTorch's caching allocator (512 B rounding, blocks of 2 and 20 MiB, splitting, merging), in "
        "which tensors lie as they live in an iteration"
    ),
    "contents": (
        "sizes of all bytes of the pool at each snapshot and after each operator of the traced iteration; what a freed "
        "block holds is what was written there last"
    ),
}
REPEATED: Final = (
    "repeated by layer, not computed at this size: those of a training of the same network with {batch} samples of "
    "{size}, width {width:g}; the entries of each of its tensors again and again, words that look-ups read likewise"
)
_MAX_LOSS_RATIO: Final = 0.5
_PROGRAM_BYTES: Final = 700 << 20  # Python with PyTorch
_BYTES_PER_SAMPLE: Final = 6 << 20  # of feature maps and what is kept of them, at 64 pixels
_FILE_BYTES: Final = 200 << 20
_NOT_YET: Final = " " * 1024
# Of kernels at the original's size, measured of SqueezeNet: 0.2 B in the file, 0.55 million in a second.
_BYTES_PER_OPERATION: Final = 1
_OPERATIONS_PER_SECOND: Final = 550_000
_MAP_BYTES_PER_BYTE: Final = 1 / 64  # of the pool and of what an iteration writes, while it is assembled


def assumptions_of(problem: TrainingProblem) -> dict[str, str]:
    """Return the assumptions for the provenance of a trace."""
    if problem.contents is None:
        return MODELLED
    small = problem.contents
    repeated = REPEATED.format(batch=small.batch, size=small.size, width=small.width)
    return MODELLED | {"contents": f"{repeated}; {MODELLED['contents']}"}


def needs_of(name: str, network: StudyNetwork, problem: TrainingProblem) -> Needs:
    """Return the needs of a training. At the original's size this counts its kernels with PyTorch, in a few seconds."""
    computed = problem.computed
    scale = (computed.size / 64) ** 2
    needs = Needs(_PROGRAM_BYTES + int(computed.batch * scale * _BYTES_PER_SAMPLE), _FILE_BYTES, problem.seconds)
    if problem.contents is None:
        return needs
    check_torch(name)
    from buddysim.workloads.training.scaled_network import graph_of, size_of

    operations, pool, written = size_of(graph_of(network, problem))
    return Needs(
        needs.memory_bytes + int((pool + written) * _MAP_BYTES_PER_BYTE),
        needs.disk_bytes + int(operations * _BYTES_PER_OPERATION + written * _MAP_BYTES_PER_BYTE),
        needs.seconds + operations / _OPERATIONS_PER_SECOND,
    )


def check_torch(name: str) -> None:
    """Refuse a training if PyTorch is missing."""
    if importlib.util.find_spec("torch") is None:
        raise BuddysimError(f"{name} needs PyTorch: {INSTALL_TORCH}")


def points(problem: TrainingProblem) -> tuple[tuple[int, ...], int]:
    """Return the iterations of the snapshots over the run, from the second to the last, and the traced one."""
    problem = problem.computed
    last = problem.steps - 1
    return tuple(
        round(1 + snapshot * (last - 1) / (SNAPSHOTS - 1)) for snapshot in range(SNAPSHOTS)
    ), problem.steps // 2


def make_training(
    name: str, workload: ModuleType, problem: TrainingProblem, output: Output, origin: Provenance
) -> list[SolutionCheck]:
    """Train, and write the trace to the output's unfinished file, which the caller checks and renames.

    Raises
    ------
    BuddysimError
            PyTorch or the data are missing
    """
    check_torch(name)
    import torch

    from buddysim.workloads.training import scaled_network
    from buddysim.workloads.training.assemble import Assembly
    from buddysim.workloads.training.observe import ObservedIteration, train

    start = time.perf_counter()
    snapshots, traced = points(problem)
    observed = tuple(sorted({*snapshots, traced}))
    running = replace(origin, assumptions=origin.assumptions | {"end": "interrupted: training had not ended"})
    losses: list[float] = []
    large = scaled_network.graph_of(workload.NETWORK, problem) if problem.contents else None
    with TraceWriter(output, running, reserved_provenance_bytes=len(_NOT_YET)) as writer:
        assembly = Assembly(writer, snapshots, traced)
        for observed_step in train(workload.NETWORK, problem.computed, observed):
            losses.append(observed_step.loss if isinstance(observed_step, ObservedIteration) else observed_step)
            if isinstance(observed_step, ObservedIteration):
                assembly.add(observed_step if large is None else scaled_network.repeat_by_layer(observed_step, large))
        checks = _checks(losses)
        verification = "; ".join(map(str, checks))
        ended = replace(
            origin,
            assumptions=origin.assumptions
            | {"verification": f"none: {verification}", "end": "none: the training ended after all its steps"},
        )
        writer.replace_provenance(ended)
    say(
        f"{output.path}: {assembly.counts['kernels']} kernels, {assembly.counts['one_pass']} of them without a model; "
        f"PyTorch {torch.__version__}; {time.perf_counter() - start:.0f} s"
    )
    return checks


def _checks(losses: list[float]) -> list[SolutionCheck]:
    tenth = max(1, len(losses) // 10)
    last = sum(losses[-tenth:]) / tenth
    what = f"loss at the end ({last:.4f}) compared with that of the first step ({losses[0]:.4f})"
    return [SolutionCheck(what, last / losses[0], 0.0, _MAX_LOSS_RATIO, "training halves it at least")]
