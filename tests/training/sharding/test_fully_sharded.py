"""FSDP2 on a model of two blocks, by hand: what a GPU holds, gathers, reduces, and when."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.training.autograd.tape import Tape
from buddysim.training.recorded_step.from_config import network_from_config

WORDS, FEATURES, INNER = 96, 32, 64
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": WORDS, "hidden_size": FEATURES,
    "intermediate_size": INNER, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
    "max_position_embeddings": 64, "tie_word_embeddings": False,
}  # fmt: skip
#: Weights of a block, and of what is outside of blocks.
BLOCK = 4 * FEATURES * FEATURES + 3 * FEATURES * INNER + 2 * FEATURES
REST = 2 * WORDS * FEATURES + FEATURES


def tape_of(**options: Any) -> Tape:
    """The record of a step of AdamW, of `CONFIG` in fp32 where the options don't say otherwise."""
    config, recipe = options.pop("config", CONFIG), options.pop("recipe", "fp32")
    network = network_from_config(config, sequence=8, recipe=recipe, **options)
    return network.at(2, "adamw").tape


def bytes_of(tape: Tape, kind: str, **having: Any) -> int:
    records = [one for one in tape.storages if one.kind == kind]
    return sum(one.bytes for one in records if all(getattr(one, name) == value for name, value in having.items()))


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_a_gpu_holds_its_part_of_weights_gradients_and_state(gpus: int):
    tape = tape_of(fsdp=gpus)
    part = 4 * (2 * BLOCK + REST) // gpus
    assert bytes_of(tape, "parameter") == part
    assert bytes_of(tape, "optimizer") == 2 * part
    gradients = [one.bytes for one in tape.storages if one.producer == "reduce_scatter"]
    assert sum(gradients) == part
    assert len(gradients) == 3  # a tensor for each block and for the rest


def test_rows_that_gpus_do_not_divide_are_padded():
    tape = tape_of(fsdp=5)
    rows = {32: 7, 64: 13, 96: 20}
    block = 4 * rows[32] * 32 + 2 * rows[64] * 32 + rows[32] * 64 + 2 * rows[32]
    assert bytes_of(tape, "parameter") == 4 * (2 * block + 2 * rows[96] * 32 + rows[32])
    collectives = [one.collective for one in tape.operations if one.collective is not None]
    assert collectives[1] == ("all_gather", 4 * 5 * block, 5)


def test_each_block_is_gathered_in_both_passes_and_reduced_once():
    collectives = [(one.scope, one.phase, one.collective) for one in tape_of(fsdp=2).operations if one.collective]
    block, rest = ("all_gather", 4 * BLOCK, 2), ("all_gather", 4 * REST, 2)
    first, second = "model.layers.0", "model.layers.1"
    reduced = [("reduce_scatter", size, 2) for size in (4 * BLOCK, 4 * BLOCK, 4 * REST)]
    assert collectives == [
        ("", "forward", rest),
        (first, "forward", block),
        (second, "forward", block),
        (second, "backward", block),
        (first, "backward", block),
        (second, "backward", reduced[0]),
        (first, "backward", reduced[1]),
        ("", "backward", reduced[2]),
    ]


def test_without_resharding_blocks_are_gathered_once():
    tape = tape_of(fsdp=2, reshard=False)
    assert [one.phase for one in tape.operations if one.name == "all_gather"] == ["forward"] * 3
    assert tape.peak_bytes() > tape_of(fsdp=2).peak_bytes()


@pytest.mark.parametrize(("gather_ahead", "is_ahead"), [(None, False), (1, True)])
def test_weights_are_gathered_ahead_of_the_block_before(gather_ahead: int | None, is_ahead: bool):
    operations = tape_of(fsdp=2, gather_ahead=gather_ahead).operations
    gather = next(one.index for one in operations if (one.name, one.scope) == ("all_gather", "model.layers.1"))
    product = next(one.index for one in operations if (one.name, one.scope[:14]) == ("mm", "model.layers.0"))
    assert (gather < product) is is_ahead


def test_in_the_forward_pass_a_blocks_weights_live_twice_next_to_the_buffer_before():
    tape = tape_of(fsdp=2)
    live = peak = 0
    for event in tape.events:
        record = tape.storages[event.storage] if hasattr(event, "storage") else None
        if record is not None and record.kind == "gathered" and record.phase == "forward":
            live += event.bytes if type(event).__name__ == "AllocationEvent" else -event.bytes
            peak = max(peak, live)
    assert peak == 4 * (REST + 3 * BLOCK)


def test_frozen_weights_are_gathered_and_not_reduced():
    tape = tape_of(fsdp=2, lora="4,q_proj")
    reduced = sum(one.collective.bytes for one in tape.operations if one.name == "reduce_scatter")
    assert reduced == 2 * 4 * 4 * 2 * FEATURES
    gathered = [one.collective.bytes for one in tape.operations if one.name == "all_gather"]
    assert gathered[1] == 4 * (BLOCK + 4 * 2 * FEATURES)


def test_gradients_of_micro_steps_are_added_to_the_parts():
    tape = tape_of(fsdp=2, accumulation=2)
    assert [one.name for one in tape.operations if one.stream == "reduce"].count("reduce_scatter") == 6
    assert [one.name for one in tape.operations if one.stream == "reduce"].count("add_") == 21


def test_the_peak_falls_with_the_number_of_gpus():
    peaks = [tape_of(fsdp=gpus).peak_bytes() for gpus in (2, 4, 8, 16)]
    assert peaks == sorted(peaks, reverse=True)
    assert len(set(peaks)) == 4


def test_gathers_wait_for_the_weights_that_were_copied_out() -> None:
    """Forward: for those two blocks before; backward: for those of the block after, which takes its gradients then."""
    tape = tape_of(fsdp=2, config={**CONFIG, "num_hidden_layers": 3})
    begins = [one for one in tape.operations if one.name == "all_gather_copy_in"]
    copied = {(one.scope, one.phase): one.index for one in tape.operations if one.name == "split_with_sizes_copy"}
    layers = [f"model.layers.{number}" for number in range(3)]
    waits = {(one.scope, one.phase): one.after for one in begins}
    assert waits["", "forward"] == waits[layers[0], "forward"] == ()
    assert waits[layers[1], "forward"] == (copied["", "forward"],)
    assert waits[layers[2], "forward"] == (copied[layers[0], "forward"],)
    assert waits[layers[2], "backward"] == (copied[layers[1], "forward"],)
    assert waits[layers[1], "backward"] == (copied[layers[2], "backward"],)
    assert waits[layers[0], "backward"] == (copied[layers[1], "backward"],)


def test_the_computations_wait_for_a_reduction_before_the_next() -> None:
    """The event of a reduce-scatter, not what follows it in its stream."""
    operations = tape_of(fsdp=2).operations
    scattered = [one.index for one in operations if one.name == "reduce_scatter"]
    waits = [one.after for one in operations if one.name == "wait" and one.after]
    assert waits == [(index,) for index in scattered]
