"""The input of the first recomputed block is saved, and offloaded, behind a frozen embedding too."""

from __future__ import annotations

from buddysim.training.options.checkpoint_rule import checkpoint_rules
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.recorded_step.from_config import network_from_config
from tests.training.step.small_config import CONFIG

BATCH, TOKENS, LAYERS = 2, 8, int(str(CONFIG["num_hidden_layers"]))
BYTES = 4 * BATCH * TOKENS * int(str(CONFIG["hidden_size"]))


def test_inputs_of_all_blocks_are_offloaded_with_and_without_adapters() -> None:
    copied = {}
    for lora in (None, "4"):
        network = network_from_config(CONFIG, sequence=TOKENS, recipe="fp32", lora=lora).at(BATCH, "adamw")
        tape = network.record_with(SavingRules(checkpoint_rules("block", LAYERS), OffloadRule())).tape  # type: ignore
        copied[lora] = [one.copy.bytes for one in tape.operations if one.copy and one.copy.direction == "offload"]
    assert copied["4"][:LAYERS] == copied[None][:LAYERS] == [BYTES] * LAYERS
