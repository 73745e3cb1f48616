"""Peaks of single layers: those of Liger's scripts to the printed digits, and what the counts are made of."""

from __future__ import annotations

import pytest

from buddysim.validation.memory.layer_script import MIB, peak_bytes
from buddysim.validation.memory.layers import REGISTRY
from buddysim.validation.memory.measured_rows import layer_rows, readings, training_rows


def simulated(kernel: str, provider: str, mode: str, value: int, version: str) -> tuple[float, float]:
    """Return the simulated and the printed peak of a row, in MiB."""
    row = next(
        row
        for row in layer_rows()
        if (row.kernel, row.provider, row.mode, row.value, row.version) == (kernel, provider, mode, value, version)
    )
    setup = REGISTRY.find(kernel).SETUPS[provider]
    return peak_bytes(setup, {**row.config, row.name: row.value, "version": version}, mode, row.gpu) / MIB, row.peak_mib


@pytest.mark.parametrize(
    ("kernel", "provider", "mode", "value", "version"),
    [
        ("cross_entropy", "huggingface", "full", 4096, "0.2.1"),
        ("geglu", "liger", "forward", 1024, "0.2.1"),
        ("geglu", "huggingface", "backward", 2048, "0.2.1"),
        ("swiglu", "huggingface", "full", 8192, "0.2.1"),
        ("swiglu", "liger", "full", 1024, "0.2.1"),
        ("layer_norm", "liger", "full", 16384, "0.2.1"),
        ("rms_norm", "huggingface", "full", 32768, "0.2.1"),
        ("rope", "huggingface", "full", 512, "0.2.1"),
        ("fused_linear_cross_entropy", "huggingface", "full", 4096, "0.4.2"),
        ("relu_squared", "torch", "full", 256, "0.7.0"),
        ("megatron_swiglu", "liger_in_place", "full", 1024, "0.8.1"),
        ("megatron_cross_entropy", "liger", "full", 4096, "0.8.0"),
    ],
)  # fmt: skip
def test_peak_is_the_printed_one(kernel: str, provider: str, mode: str, value: int, version: str) -> None:
    peak, printed = simulated(kernel, provider, mode, value, version)
    assert peak == pytest.approx(printed, rel=1.3e-3)


def test_cross_entropy_holds_five_times_the_logits() -> None:
    """Logits, their gradient, log-softmax, and the gradients of both steps: 5 x 16,384 x 4096 x 4 B, and the labels."""
    peak, _ = simulated("cross_entropy", "huggingface", "full", 4096, "0.2.1")
    assert peak == pytest.approx(5 * 256 + 16384 * 8 / MIB, abs=0.01)


def test_gradients_that_overwrite_the_logits_need_one_fifth() -> None:
    peak, _ = simulated("cross_entropy", "liger", "full", 4096, "0.2.1")
    assert 256 < peak < 257


def test_products_bring_two_workspaces() -> None:
    """x, three weights, gate, its activation, up, their product, the result; cuBLAS's 8.125 MiB in both threads."""
    peak, _ = simulated("geglu", "huggingface", "forward", 1024, "0.2.1")
    assert peak == 64 + 3 * 86 + 4 * 172 + 64 + 2 * 8.125


def test_every_source_has_a_reading() -> None:
    assert {row.source_set for row in training_rows()} <= set(readings())
    assert len(training_rows()) == 108
    assert sum(row.is_usable for row in training_rows()) == 13
    assert len(layer_rows()) == 347
