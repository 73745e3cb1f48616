"""ZeRO 3, by hand: which weights stay, what one GPU holds, when weights are gathered and given back."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import Tape
from tests.training.sharding.test_fully_sharded import CONFIG, bytes_of, tape_of

FEATURES, INNER, WORDS = 512, 1024, 640
LARGE: dict[str, Any] = {**CONFIG, "hidden_size": FEATURES, "intermediate_size": INNER, "vocab_size": WORDS}
#: Each weight of a product and the embedding has above 100,000 elements; norms have fewer and stay.
DIVIDED = 2 * (4 * FEATURES * FEATURES + 3 * FEATURES * INNER) + 2 * WORDS * FEATURES
NORMS = 5 * FEATURES


def recorded(gpus: int = 4, **options: Any) -> Tape:
    return tape_of(config=LARGE, zero3=gpus, bucket=1, **options)


@pytest.mark.parametrize("gpus", [2, 8])
def test_a_gpu_holds_its_part_of_weights_gradients_masters_and_state(gpus: int) -> None:
    tape = recorded(gpus)
    part = (DIVIDED + NORMS) // gpus
    assert bytes_of(tape, "parameter") == 4 * part
    assert bytes_of(tape, "master") == 4 * part
    assert bytes_of(tape, "optimizer") == 2 * 4 * part
    assert bytes_of(tape, "gradient", phase="setup") == 4 * part


def test_small_weights_are_there_before_and_behind_the_step() -> None:
    """And only they are gathered behind the update."""
    tape = recorded()
    freed = {event.storage for event in tape.events if isinstance(event, FreeEvent)}
    stay = [one for one in tape.storages if one.kind == "gathered" and one.number not in freed]
    assert sum(one.bytes for one in stay) == 4 * NORMS
    last = [one.collective for one in tape.operations if one.collective is not None][-1]
    assert last == ("all_gather", 4 * NORMS, 4)


def test_every_weight_is_gathered_before_its_products_read_it() -> None:
    """No weight is read by a product whose memory isn't there; all are given back behind the backward pass."""
    tape = recorded()
    live: set[int] = set()
    most = 0
    for event in tape.events:
        if isinstance(event, AllocationEvent):
            live.add(event.storage)
        elif isinstance(event, FreeEvent):
            live.discard(event.storage)
        else:
            assert {one.storage for one in (*event.reads, *event.writes)} <= live
            gathered = sum(tape.storages[one].bytes for one in live if tape.storages[one].kind == "gathered")
            most = max(most, gathered)
    assert 4 * (DIVIDED + NORMS) <= most <= 2 * 4 * (DIVIDED + NORMS)  # below the prefetch limit: all at once


def test_what_isnt_used_soon_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are gathered ahead while fewer elements than a limit live; the last one may exceed it."""
    limit = FEATURES * INNER
    for name, value in (("PREFETCH", 1), ("REUSE_DISTANCE", 1), ("MAX_LIVE", limit)):
        monkeypatch.setattr(f"buddysim.training.sharding.partitioned_weights.{name}", value)
    tape = recorded()
    level = most = 0
    for event in tape.events:
        if isinstance(event, AllocationEvent | FreeEvent) and tape.storages[event.storage].kind == "gathered":
            level += event.bytes if isinstance(event, AllocationEvent) else -event.bytes
            most = max(most, level)
    assert 4 * (NORMS + FEATURES * INNER) <= most <= 4 * (NORMS + limit + FEATURES * INNER)


def test_gradients_are_reduced_once_each_in_buckets() -> None:
    tape = recorded()
    reduced = [one.collective.bytes for one in tape.operations if one.name == "reduce_scatter" and one.collective]
    assert sum(reduced) == 4 * (DIVIDED + NORMS)


def test_quantised_weights_are_gathered_with_their_layer() -> None:
    """The parts of a quantised weight, and adapters next to it; torchao's tensors are refused."""
    tape = recorded(recipe="bf16", lora="8,all", qlora=True, lora_library="peft")
    formats = {
        (one.reads[0].dtype.name, one.collective.bytes)
        for one in tape.operations
        if one.collective is not None and one.name == "all_gather" and one.stream == "gather"
    }
    assert {name for name, _ in formats} >= {"uint8", "bfloat16"}
    with pytest.raises(BuddysimError, match=r"^zero3: not simulated with quantised tensors of torchao"):
        recorded(recipe="bf16", lora="8,all", qlora=True)
