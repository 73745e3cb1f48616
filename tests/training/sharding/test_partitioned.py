"""ZeRO 1 and 2, by hand: what one GPU holds, when gradients end, what is reduced and gathered."""

from __future__ import annotations

import pytest

from buddysim.training.autograd.tape import Tape
from tests.training.sharding.test_fully_sharded import BLOCK, CONFIG, REST, bytes_of, tape_of

WEIGHTS = 2 * BLOCK + REST
MIB = 1 << 20


def of_kind(tape: Tape, kind: str) -> list[tuple[str, int]]:
    return [(one.producer, one.bytes) for one in tape.storages if one.kind == kind]


@pytest.mark.parametrize("stage", ["zero1", "zero2"])
@pytest.mark.parametrize("gpus", [2, 8])
def test_a_gpu_holds_all_weights_and_its_part_of_the_state(stage: str, gpus: int):
    tape = tape_of(**{stage: gpus, "bucket": 1})
    part = 4 * WEIGHTS // gpus
    assert bytes_of(tape, "parameter") == 4 * WEIGHTS
    assert bytes_of(tape, "master") == part
    assert bytes_of(tape, "optimizer") == 2 * part


def test_the_part_is_padded_to_a_multiple_of_twice_the_gpus():
    tape = tape_of(zero1=7, bucket=1)
    assert bytes_of(tape, "master") == 4 * -(-WEIGHTS // 14) * 2


def test_the_bucket_is_allocated_with_the_first_gradient_and_freed_behind_the_backward_pass():
    tape = tape_of(zero2=2, bucket=1)
    bucket = next(one for one in tape.storages if one.kind == "bucket" and one.producer == "empty")
    assert (bucket.bytes, bucket.phase) == (MIB, "backward")
    update = next(one for one in tape.operations if one.phase == "optimizer")
    assert bucket.freed is not None
    assert bucket.freed < tape.events.index(update)


def test_gradients_end_as_they_arrive_in_stage_2_and_behind_the_backward_pass_in_stage_1():
    copies = {}
    for stage in ("zero1", "zero2"):
        operations = tape_of(**{stage: 2, "bucket": 1}).operations
        last = max(one.index for one in operations if one.name == "embedding_dense_backward")
        copies[stage] = [one.index < last for one in operations if one.name == "copy_" and one.phase == "backward"]
    assert not any(copies["zero1"])
    assert copies["zero2"].count(True) == 20  # all but the embedding's
    assert tape_of(zero2=8, bucket=1).peak_bytes() < tape_of(zero1=8, bucket=1).peak_bytes()


def test_what_is_reduced_is_copied_where_it_belongs_to_several_gpus():
    tape = tape_of(zero2=2, bucket=1)
    assert ("cat", 4 * WEIGHTS) in of_kind(tape, "bucket")
    reduced = [one.collective for one in tape.operations if one.name == "all_reduce"]
    assert reduced == [("all_reduce", 4 * WEIGHTS, 2)]


def test_this_gpus_gradients_are_put_together_updated_and_gathered():
    tape = tape_of(zero2=4, bucket=1)
    update = [one.name for one in tape.operations if one.phase == "optimizer"]
    assert update[0] == "cat"
    assert update[-2:] == ["copy_", "all_gather"]
    assert tape.operations[-1].collective == ("all_gather", 4 * WEIGHTS, 4)


def test_a_gradient_that_is_larger_than_the_bucket_is_reduced_where_it_is():
    words = 1 << 14
    tape = tape_of(zero2=2, bucket=1, config={**CONFIG, "vocab_size": words})
    sizes = [one.collective.bytes for one in tape.operations if one.name == "all_reduce" and one.collective]
    assert sizes == [4 * words * 32, 4 * (2 * BLOCK + 32), 4 * words * 32]


@pytest.mark.parametrize(("stage", "reductions"), [("zero1", 1), ("zero2", 3)])
def test_micro_steps_are_reduced_each_in_stage_2_and_together_in_stage_1(stage: str, reductions: int):
    tape = tape_of(**{stage: 2, "bucket": 1, "accumulation": 3})
    assert [one.name for one in tape.operations].count("all_reduce") == reductions
