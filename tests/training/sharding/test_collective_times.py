"""When GPUs gather and reduce in a step: timelines of two blocks on paper, laws of real models, whole steps measured.

`f1` is the first block's forward pass, `b1` its backward pass, `g1` its gather, `r1` the reduction of its gradients.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.machine.training import TrainingMachine
from buddysim.training.collectives import CollectiveTimes
from buddysim.training.collectives.assumptions import collective_assumptions
from buddysim.training.collectives.contention import kernels_left
from buddysim.training.driver import simulate_outcome
from buddysim.training.iteration.program import Program
from buddysim.training.iteration.schedule import IterationSchedule, schedule
from buddysim.training.iteration.timeline import SharedFractions
from buddysim.training.outcome import IterationOutcome
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.result import TrainingResult
from tests.training.sharding.test_fully_sharded import BLOCK as WEIGHTS
from tests.training.sharding.test_fully_sharded import CONFIG
from tests.training.sharding.test_fully_sharded import REST as OTHER_WEIGHTS
from tests.training.sharding.two_blocks import BLOCK, MICROSECOND, REST, TableCost, program_of, recorded


def times(gather: int, reduce: int) -> TableCost:
    """Microseconds of a block's gather and reduction; what is outside of blocks takes none.

    DDP reduces that in the bucket of the first block.
    """
    kinds = {"all_gather": gather, "reduce_scatter": reduce, "all_reduce": reduce}
    return TableCost(
        {(kind, size): microseconds for kind, microseconds in kinds.items() for size in (BLOCK, BLOCK + REST)}
    )


def spans(timed: IterationSchedule, stream: str) -> list[tuple[float, float]]:
    """Starts and ends of what a stream does, in microseconds."""
    busy = [one for one in timed.records if one.stream == stream and one.end_ps > one.start_ps]
    return [(one.start_ps / MICROSECOND, one.end_ps / MICROSECOND) for one in busy]


CASES = {
    # g1 0-4, f1 4-14, g2 4-8, f2 14-24; g2 again 8-12, b2 24-44; g1 again 24-28, b1 44-64, r2 44-50, r1 64-70
    ("fsdp", 4, 6): 70,
    # g1 0-15, f1 15-25, g2 15-30, f2 30-40, g2 30-45, b2 45-65, g1 45-60, b1 65-85, r2 65-90, r1 90-115
    ("fsdp", 15, 25): 115,
    # f1 f2 0-20, b2 20-40, r2 40-46, b1 40-60, r1 60-66
    ("ddp", 0, 6): 66,
    # r2 40-65, r1 65-90
    ("ddp", 0, 25): 90,
}


@pytest.mark.parametrize("case", CASES)
def test_timelines_are_those_on_paper(case: tuple[str, int, int]) -> None:
    kind, gather, reduce = case
    timed = schedule(program_of(recorded(kind), times(gather, reduce)))
    assert timed.time_ps == CASES[case] * MICROSECOND


def test_gathers_and_reductions_are_streams_of_their_own() -> None:
    timed = schedule(program_of(recorded("fsdp"), times(4, 6)))
    assert spans(timed, "gather") == [(0, 4), (4, 8), (8, 12), (24, 28)]
    assert spans(timed, "reduce") == [(44, 50), (64, 70)]
    assert {one.cause for one in timed.stalls} == {"gather", "reduce"}


def test_kernels_take_longer_next_to_collectives() -> None:
    """Half of the rate is left: g1 0-4, f1 4-18 next to g2 4-8 and 8-12, f2 18-28, b2 28-50, b1 50-73, r1 73-79."""
    program = program_of(recorded("fsdp"), times(4, 6))
    timed = schedule(replace(program, shared=SharedFractions(compute=Fraction(1, 2))))
    assert timed.time_ps == 79 * MICROSECOND
    contention = sum(one.ps for one in timed.stalls if one.cause == "contention")
    assert contention == (4 + 2 + 3) * MICROSECOND
    assert timed.time_ps == sum(one.compute_ps for one in program.steps) + sum(one.ps for one in timed.stalls)


def outcome(machine: Any = "h100-sxm", **options: Any) -> IterationOutcome:
    """A step of the two blocks of `CONFIG`."""
    network = network_from_config(CONFIG, sequence=64, recipe="fp32", **options)
    return simulate_outcome(network, 2, machine, "eager", optimizer="adamw")


def collectives(program: Program) -> list[tuple[str, int, int]]:
    return [(one.stream, one.byte_count, one.duration_ps) for one in program.tasks if one.byte_count]


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_each_collective_takes_the_time_of_its_bytes_and_gpus(gpus: int) -> None:
    """Two blocks gathered twice and what is outside of them once; each reduced once: by hand, the bytes of a ring."""
    known = CollectiveTimes(TrainingMachine.load("h100-sxm"))
    gathers = [4 * OTHER_WEIGHTS, *[4 * WEIGHTS] * 4]
    reductions = [4 * WEIGHTS, 4 * WEIGHTS, 4 * OTHER_WEIGHTS]
    expected = [("gather", size, known.time_ps("all_gather", size, gpus)) for size in gathers]
    expected += [("reduce", size, known.time_ps("reduce_scatter", size, gpus)) for size in reductions]
    assert sorted(collectives(outcome(fsdp=gpus).program)) == sorted(expected)


@pytest.mark.parametrize("kind", ["zero1", "zero2"])
def test_without_overlap_collectives_add_up(kind: str) -> None:
    """DeepSpeed's stages 1 and 2 reduce in the stream that computes, where `overlap_comm` is not set."""
    one = outcome(**{kind: 4})
    assert one.collectives_ps > 0
    assert one.time_ps == one.all_layers.compute_ps + one.collectives_ps


@pytest.mark.parametrize("kind", ["ddp", "fsdp", "zero1", "zero2", "zero3"])
def test_a_faster_link_between_gpus_is_never_slower(kind: str) -> None:
    machine = TrainingMachine.load("h100-sxm")
    quick, slow = (machine.with_overrides({"training.gpu_link": link}) for link in ("nvlink4", "pcie4-peer"))
    fast, late = outcome(quick, **{kind: 8}), outcome(slow, **{kind: 8})
    assert fast.collectives_ps < late.collectives_ps
    assert fast.time_ps < late.time_ps
    assert fast.all_layers.compute_ps == late.all_layers.compute_ps


def test_a_result_says_what_its_collectives_rest_on(capsys: pytest.CaptureFixture[str]) -> None:
    assumptions = TrainingResult.from_outcome(outcome(fsdp=8)).provenance["assumptions"]
    assert assumptions["collectives"].startswith("8 GPUs linked by nvlink4; fitted to H100-SXM5-80GB with NCCL 2.27.3")
    assert f"lose {float(1 - kernels_left()):.0%}" in assumptions["contention"]
    assert "8 in a node" in collective_assumptions(TrainingMachine.load("h100-sxm"), 16)["collectives"]
    assert not {"collectives", "contention"} & set(TrainingResult.from_outcome(outcome()).provenance["assumptions"])
    arguments = ["--fsdp", "8", "--sequence", "64", "--batch", "2", "--machine", "h100-sxm", "--scheme", "eager"]
    assert main(["train", "opt-125m", *arguments]) == 0
    screen = capsys.readouterr().out
    assert "batch 2 a GPU, on 8 h100-sxm" in screen
    assert "other GPUs take" in screen


def test_a_machine_without_a_link_to_other_gpus_is_refused() -> None:
    with pytest.raises(BuddysimError, match="titan-x: no link to other GPUs: expected a machine with"):
        outcome("titan-x", fsdp=8)
    with pytest.raises(BuddysimError, match="16 GPUs linked by pcie4-through-host: expected at most 8"):
        outcome("rtx-4090", fsdp=16)
