"""Described networks on tensor cores: a step is the later of the GPU's and the host's line."""

from __future__ import annotations

import pytest

from buddysim.training import simulate
from buddysim.training.cost.operators.host import HOST


def time_ms(batch: int, precision: str, machine: str = "h100-sxm") -> float:
    return simulate("resnet50", batch=batch, machine=machine, scheme="eager", precision=precision).counters["time_ms"]


def test_a_small_step_waits_for_the_host() -> None:
    """ResNet-50 has 53 CONV, as many normalisations, 49 ReLU, and more: over 150 operators of each pass."""
    assert time_ms(1, "fp16") > 150 * (HOST.forward_us + HOST.backward_us) / 1e3


def test_a_large_step_waits_for_its_first_kernel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with_host = time_ms(64, "fp16")
    monkeypatch.setattr("buddysim.training.iteration.build.LaunchQueue", lambda _: None)
    first = (HOST.forward_us + HOST.launch_us) / 1e3
    assert with_host - time_ms(64, "fp16") == pytest.approx(first, rel=0.01)


def test_timed_layers_have_the_launch_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before = time_ms(1, "fp32", "v100")
    monkeypatch.setattr("buddysim.training.iteration.build.LaunchQueue", lambda _: None)
    assert time_ms(1, "fp32", "v100") == before
