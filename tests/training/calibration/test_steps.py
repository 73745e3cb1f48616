"""Measured steps as their sources timed them: losses, dropout, heads; and what a step's time adds up from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from buddysim.training.calibration.iterations import fit_iterations
from buddysim.training.calibration.steps import IterationConstants, StepParts, network_of_step, parts_of, step_ms
from buddysim.training.collectives import CollectiveTimes
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.operators.rows import TimedStep

STEP = TimedStep(
    "made", "made-1", "a100-80", "gpt2", "fp32", "eager", "eager", "whole", 64, 1, 1, "none", 1, "none", "forward", 10.0
)
CONSTANTS = IterationConstants(0.5, {"a100-80": {"forward": 2.0, "backward": 3.0}}, 0.5)


def gpu_ms(step: TimedStep) -> float:
    precision = "fp32" if step.recipe == "fp32" else "bf16"
    return parts_of(step, network_of_step(step), CostModel.load(step.gpu, precision=precision)).gpu_ms


def test_a_step_is_the_longer_line() -> None:
    """5 + 1 + 2 + half of 4 are 10 ms of the GPU; version 1 of attention takes 2 x 1 + 3 x 2, half for small heads."""
    parts = StepParts(5.0, 1.0, 2.0, 7.0, 4.0, 0.0, head_size=128)
    assert step_ms(STEP, parts, CONSTANTS) == 10.0
    assert step_ms(STEP, replace(parts, host_ms=12.0), CONSTANTS) == 12.0
    older = replace(STEP, attention="flash1")
    assert step_ms(older, parts, CONSTANTS) == 15.0
    assert step_ms(older, replace(parts, head_size=64), CONSTANTS) == 11.0


def test_a_gpu_without_factors_takes_those_of_its_compute_capability() -> None:
    constants = IterationConstants(0.5, {"h100-sxm": {"forward": 9.0}, **CONSTANTS.flash1}, 0.5)
    assert [constants.flash1_gpu(gpu) for gpu in ("a100-40", "a100-80", "v100")] == ["a100-80", "a100-80", "h100-sxm"]
    parts = StepParts(5.0, 1.0, 2.0, 7.0, 4.0, 0.0, head_size=128)
    older = replace(STEP, attention="flash1", gpu="a100-40")
    assert step_ms(older, parts, constants) == 15.0


def test_what_no_step_tells_is_not_fitted() -> None:
    """Steps of large heads say nothing of small ones; with one of small heads, their factor of 0.5 is found."""
    older = replace(STEP, attention="flash1", source="llmfoundry-a100-80", part="step")
    sizes = [(1.0, 0.0, 1.0), (2.0, 5.0, 3.0), (4.0, 1.0, 0.0), (3.0, 2.0, 8.0)]
    parts = [StepParts(5.0, one, other, 0.0, moved, 0.0, head_size=128) for one, other, moved in sizes]
    steps = [replace(older, ms=step_ms(older, part, CONSTANTS)) for part in parts]
    assert all(step.fitted for step in steps)
    assert fit_iterations(steps, parts).flash1_small_heads == 1.0
    small = replace(parts[1], head_size=64)
    steps.append(replace(older, ms=step_ms(older, small, CONSTANTS)))
    assert fit_iterations(steps, [*parts, small]).flash1_small_heads == pytest.approx(0.5, abs=0.01)


def test_a_forward_pass_that_is_timed_without_loss() -> None:
    whole, untimed, none = (gpu_ms(replace(STEP, loss=loss)) for loss in ("whole", "untimed", "none"))
    assert whole > untimed > none


def test_an_evaluation_has_no_dropout_and_bert_no_head_for_words() -> None:
    network = network_of_step(replace(STEP, loss="none"))
    assert not [one for one in network.tape.operations if "dropout" in one.name]
    bert = replace(STEP, model="bert-large")
    with_head, without = (gpu_ms(replace(bert, loss=loss)) for loss in ("untimed", "none"))
    assert without < 0.96 * with_head


def test_the_fused_loss_reads_logits_once_and_writes_their_gradient() -> None:
    """Of 64 x 50,257 logits 2 B are read forward, read and written backward: 19.3 MB."""
    half = replace(STEP, recipe="amp-bf16", part="step")
    saved = gpu_ms(half) - gpu_ms(replace(half, loss="flash"))
    assert saved > 0.03


@pytest.mark.parametrize("name", ["nll_loss_forward", "nll_loss_backward"])
def test_the_loss_reads_one_probability_of_a_row(name: str) -> None:
    from buddysim.training.networks.recorded.work import work_of

    (operation,) = [one for one in network_of_step(STEP).tape.operations if one.name == name]
    logits = max(one.bytes for one in operation.reads)
    assert work_of(operation).bytes == pytest.approx(logits if "backward" in name else 0, abs=0.01 * logits)


def test_ddp_updates_all_weights_on_each_gpu_and_reduces_gradients_once() -> None:
    step = replace(STEP, recipe="bf16", part="step", gpus=8, sharding="fsdp")
    network, cost = network_of_step(step), CostModel.load("a100-80", precision="bf16")
    sharded, ddp, alone = (parts_of(replace(step, sharding=name), network, cost) for name in ("fsdp", "ddp", "none"))
    assert ddp.update_ms == pytest.approx(8 * sharded.update_ms)
    assert alone.update_ms == ddp.update_ms
    stored = sum(one.bytes for one in network.tape.storages if one.kind == "parameter")
    assert ddp.collectives_ms == CollectiveTimes(cost.machine).time_ps("all_reduce", stored, 8) / 1e9
    assert (alone.collectives_ms, sharded.collectives_ms > ddp.collectives_ms) == (0.0, True)
