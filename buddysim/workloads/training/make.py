"""The trace of a network in training."""

from __future__ import annotations

import time
from dataclasses import replace
from types import ModuleType
from typing import Final

from buddysim.base.errors import BuddysimError
from buddysim.base.extras import INSTALL_TORCH
from buddysim.base.output import Output
from buddysim.base.terminal import say
from buddysim.capture.torch.access.of_graph import ASSUMED
from buddysim.trace import Provenance, TraceWriter
from buddysim.workloads.needs import Needs
from buddysim.workloads.solver import SNAPSHOTS, Check
from buddysim.workloads.training.problem import Problem

MODELLED: Final = dict(ASSUMED["models"]) | {
    "allocations": (
        "the segments of PyTorch's caching allocator (512 B rounding, blocks of 2 and 20 MiB, splitting, merging), in "
        "which tensors lie as they live in an iteration"
    ),
    "contents": (
        "sizes of all bytes of the pool at each snapshot and after each operator of the traced iteration; what a freed "
        "block holds is what was written there last"
    ),
}
_LOSS_SHARE: Final = 0.5
_PROGRAM_BYTES: Final = 700 << 20  # Python with PyTorch
_BYTES_PER_SAMPLE: Final = 6 << 20  # of feature maps and what is kept of them, at 64 pixels
_FILE_BYTES: Final = 200 << 20
_NOT_YET: Final = " " * 1024


def needs_of(problem: Problem) -> Needs:
    """What a training needs."""
    share = (problem.size / 64) ** 2
    return Needs(_PROGRAM_BYTES + int(problem.batch * share * _BYTES_PER_SAMPLE), _FILE_BYTES, problem.seconds)


def points(problem: Problem) -> tuple[tuple[int, ...], int]:
    """The iterations of the snapshots over the run, from the second to the last; the traced one."""
    last = problem.steps - 1
    return tuple(round(1 + turn * (last - 1) / (SNAPSHOTS - 1)) for turn in range(SNAPSHOTS)), problem.steps // 2


def make_training(name: str, workload: ModuleType, problem: Problem, output: Output, origin: Provenance) -> list[Check]:
    """Trains, and writes the trace to the output's part; the caller checks and puts it in its place.

    Raises
    ------
    BuddysimError
        where PyTorch or the data are missing
    """
    try:
        import torch
    except ImportError:
        raise BuddysimError(f"{name} needs PyTorch: {INSTALL_TORCH}") from None
    from buddysim.workloads.training.assemble import Assembly
    from buddysim.workloads.training.observe import Iteration, train

    start = time.perf_counter()
    snapshots, traced = points(problem)
    observed = tuple(sorted({*snapshots, traced}))
    running = replace(origin, assumptions=origin.assumptions | {"end": "interrupted: training had not ended"})
    losses: list[float] = []
    with TraceWriter(output, running, provenance_room=len(_NOT_YET)) as writer:
        assembly = Assembly(writer, snapshots, traced)
        for found in train(workload.NETWORK, problem, observed):
            losses.append(found.loss if isinstance(found, Iteration) else found)
            if isinstance(found, Iteration):
                assembly.add(found)
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


def _checks(losses: list[float]) -> list[Check]:
    tenth = max(1, len(losses) // 10)
    last = sum(losses[-tenth:]) / tenth
    what = f"loss at the end ({last:.4f}) beside that of the first step ({losses[0]:.4f})"
    return [Check(what, last / losses[0], 0.0, _LOSS_SHARE, "training halves it at least")]
