"""When hooks of gradients run: at once in eager code, at the end of a compiled region."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.training.autograd.tape import Tape
from buddysim.training.options.optimizer_offload import OptimizerOffload
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.recorded_step.from_config import network_from_config
from tests.training.step.small_config import CONFIG

#: As torchtune compiles: each layer by itself.
BY_LAYER = {**CONFIG, "model_type": "torchtune", "architectures": ["TransformerDecoder"]}
#: Of 4096 numbers and more: two of attention, three of the MLP; the others' updates stay on the GPU.
LARGE_WEIGHTS_OF_A_LAYER = 5


def copies(tape: Tape) -> list[int]:
    """Products of the backward pass behind which each gradient is copied, in the order of the copies."""
    products = [one.index for one in tape.operations if one.phase == "backward" and one.products]
    return [
        sum(index < one.index for index in products)
        for one in tape.operations
        if one.copy is not None and one.copy.direction == "offload"
    ]


def recorded(content: dict[str, Any], compiled: bool) -> Tape:
    """A step whose optimizer is the host's."""
    rules = SavingRules(optimizer=OptimizerOffload())
    network = network_from_config(content, sequence=32, recipe="bf16", compile=compiled)
    tape: Tape = network._recorded(2, "adamw", rules).tape
    return tape


def test_gradients_of_eager_code_are_copied_as_they_come() -> None:
    behind = copies(recorded(CONFIG, False))
    assert behind == sorted(behind)
    assert behind[0] < 5
    assert len(set(behind)) > LARGE_WEIGHTS_OF_A_LAYER


def test_gradients_of_a_compiled_model_are_copied_behind_its_last_product() -> None:
    tape = recorded(CONFIG, True)
    products = sum(one.phase == "backward" and bool(one.products) for one in tape.operations)
    assert set(copies(tape)) == {products}
    assert len(copies(tape)) == len(copies(recorded(CONFIG, False)))


def test_gradients_of_compiled_layers_are_copied_layer_by_layer() -> None:
    """The head's at once, those of the second layer behind it, those of the first before the embedding's."""
    behind = copies(recorded(BY_LAYER, True))
    assert [behind.count(one) for one in sorted(set(behind))] == [
        1, LARGE_WEIGHTS_OF_A_LAYER, LARGE_WEIGHTS_OF_A_LAYER + 1,
    ]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
def test_updates_in_the_backward_pass_follow_the_hooks(compiled: bool) -> None:
    options: dict[str, Any] = {"optimizer_in_backward": True, "recipe": "bf16", "optimizer_variant": "fused"}
    tape = network_from_config(CONFIG, sequence=32, compile=compiled, **options).at(2, "adamw").tape
    updates = [one.index for one in tape.operations if "adam" in one.name]
    last = max(one.index for one in tape.operations if one.phase == "backward" and one.products)
    assert (min(updates) > last) is compiled
