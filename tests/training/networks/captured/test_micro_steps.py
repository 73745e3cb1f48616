"""Gradients that several passes add up before an update: captured, and under schemes that recompute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from buddysim.formats.operator_graph import Operator, OperatorGraph, Phase
from buddysim.training import simulate
from buddysim.training.networks.captured.micro_steps import micro_steps
from buddysim.training.networks.captured.network import CapturedNetwork, read_operator_network
from buddysim.training.not_simulated import NotSimulatedError


def operator(phase: Phase, module: str) -> Operator:
    return Operator("aten.relu.default", phase, "compute", module)


def test_a_forward_operator_behind_a_backward_one_begins_a_micro_step() -> None:
    once = [operator("forward", "a"), operator("forward", "b"), operator("backward", "b"), operator("backward", "a")]
    update = operator("optimizer", "")
    assert micro_steps(OperatorGraph((), (), (*once, *once, update))) == (0,) * 4 + (1,) * 5
    outside = operator("forward", "")  # inputs of the second one, and what follows the last one
    assert micro_steps(OperatorGraph((), (), (*once, outside, *once, outside, update))) == (0,) * 4 + (1,) * 7
    other = replace(once[1], module="c")
    assert micro_steps(OperatorGraph((), (), (*once, once[0], other, *once[2:], update))) == (0,) * 9


def accumulated(output: Path, passes: int) -> None:
    """Train four layers, with an update after some equal passes."""
    import torch

    from buddysim.capture import training

    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with training(output, batch=512):
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(passes):
                model(torch.randn(512, 64)).square().mean().backward()
            optimizer.step()


@pytest.mark.slow
def test_each_pass_recomputes_its_own(tmp_path: Path) -> None:
    """Three passes take three times as long as one, without the update; a new gradient lives next to the sum of all."""
    pytest.importorskip("torch")
    from tests.capture.torch.test_scripts import apart

    networks: list[CapturedNetwork] = []
    for passes in (1, 3):
        path = tmp_path / f"{passes}.graph.json"
        apart(accumulated, path, passes)
        networks.append(read_operator_network(path))
        assert networks[-1].at(512).repeated_passes == passes
        assert networks[-1].options["backward_passes"] == passes
    once, thrice = (simulate(one, 512, "a100-40", "activation-checkpointing") for one in networks)
    assert [layer.name for layer in thrice.outcome.network.layers] == [one.name for one in once.outcome.network.layers]
    kinds = [[step.pass_ for step in one.outcome.program.steps] for one in (once, thrice)]
    assert kinds[1] == 3 * kinds[0][:-1] + ["update"]
    assert "recompute" in kinds[0]
    times = [one.outcome.schedule.time_ps - one.outcome.program.steps[-1].compute_ps for one in (once, thrice)]
    assert times[1] == pytest.approx(3 * times[0], rel=0.001)
    weights = 4 * (64 * 64 + 64) * 4
    peaks = [one.counters["memory.peak_bytes"] for one in (once, thrice)]
    assert peaks[0] <= peaks[1] <= peaks[0] + weights + 3 * 512 * 64 * 4  # the gradients of before, and all batches
    eager = simulate(networks[1], 512, "a100-40", "eager").counters["memory.peak_bytes"]
    assert peaks[1] < eager
    with pytest.raises(NotSimulatedError, match="not simulated with backward_passes"):
        simulate(networks[1], 512, "a100-40", "offload-activations")
