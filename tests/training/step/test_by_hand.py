"""State of optimizers and bytes of recipes, by hand."""

from __future__ import annotations

import pytest

from buddysim.training.recorded_step.from_config import network_from_config
from tests.training.step.small_config import CONFIG

#: Elements of the weights of `CONFIG`: embedding and head, per layer q, k, v, o, gate, up, down; 5 norms of 64.
MATRICES = [640 * 64] * 2 + ([64 * 64] * 2 + [32 * 64] * 2 + [160 * 64] * 3) * 2
NORMS = [64] * 5
ELEMENTS = sum(MATRICES) + sum(NORMS)


def state_of(optimizer: str, **options: str) -> int:
    tape = network_from_config(CONFIG, sequence=8, recipe="bf16", **options).at(1, optimizer).tape
    return sum(one.bytes for one in tape.storages if one.kind == "optimizer")


def quantised(code_bytes: float, block: int, table_bytes: int, small_bytes: int) -> int:
    large = [one for one in MATRICES if one >= 4096]
    small = [one for one in (*MATRICES, *NORMS) if one < 4096]
    return int(2 * sum(one * code_bytes + one // block * 4 + table_bytes for one in large)) + 2 * small_bytes * sum(
        small
    )


def test_state_in_bytes() -> None:
    assert state_of("sgd") == 0
    assert state_of("momentum") == 2 * ELEMENTS
    assert state_of("adamw") == 4 * ELEMENTS
    assert state_of("adamw", optimizer_variant="fused") == 4 * ELEMENTS + 4 * len(MATRICES + NORMS)
    assert state_of("adamw-8bit", optimizer_variant="torchao") == quantised(1, 256, 1024, 2)
    assert state_of("adamw-8bit", optimizer_variant="bitsandbytes") == quantised(1, 256, 0, 4) + 2 * 1024
    assert state_of("adamw-4bit") == quantised(0.5, 128, 64, 2)


@pytest.mark.parametrize("micro_steps", [1, 2, 3, 7])
def test_micro_steps_between_the_first_and_the_last_are_recorded_once(micro_steps: int) -> None:
    tape = network_from_config(CONFIG, sequence=8, accumulation=micro_steps).at(1, "adamw").tape
    products = [one for one in tape.operations if one.products]
    one_step = [one for one in products if one.micro_step == 0]
    assert sum(one.times for one in products) == micro_steps * len(one_step)
    assert len(products) == min(micro_steps, 3) * len(one_step)


def test_masters_and_their_state_are_in_single_precision() -> None:
    tape = network_from_config(CONFIG, sequence=8, recipe="bf16-master").at(1, "adamw").tape
    held = {kind: sum(one.bytes for one in tape.storages if one.kind == kind) for kind in ("parameter", "master")}
    assert held == {"parameter": 2 * ELEMENTS, "master": 4 * ELEMENTS}
    assert sum(one.bytes for one in tape.storages if one.kind == "optimizer") == 8 * ELEMENTS
