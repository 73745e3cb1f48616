"""DDP's buckets, by hand."""

from __future__ import annotations

from buddysim.training.autograd.tape import Tape
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.recorded_step.run import record_step
from tests.training.sharding.test_fully_sharded import BLOCK, CONFIG, REST, tape_of


def buckets(tape: Tape) -> list[int]:
    return [one.bytes for one in tape.storages if one.kind == "bucket"]


def test_buckets_hold_all_gradients_once_more_and_are_there_from_the_start():
    tape = tape_of(ddp=4)
    assert buckets(tape) == [4 * (2 * BLOCK + REST)]
    bucket = next(one for one in tape.storages if one.kind == "bucket")
    assert (bucket.phase, bucket.freed) == ("setup", None)
    assert tape.peak_bytes() == tape_of().peak_bytes() + bucket.bytes


def test_a_bucket_is_full_at_25_mib_and_the_first_one_at_one():
    config = {**CONFIG, "vocab_size": 1 << 18, "num_hidden_layers": 1}
    tape = network_from_config(config, sequence=8, recipe="fp32", ddp=2).at(1, "none").tape
    words = 4 * 32 << 18
    assert buckets(tape) == [words, 4 * BLOCK + 4 * 32 + words]
    reduced = [one.collective for one in tape.operations if one.collective is not None]
    assert [(one.kind, one.bytes) for one in reduced] == [("all_reduce", size) for size in buckets(tape)]


def test_gradients_of_exactly_one_mib_fill_the_first_bucket():
    config = {**CONFIG, "vocab_size": 1 << 13, "num_hidden_layers": 1}
    tape = network_from_config(config, sequence=8, recipe="fp32", ddp=2).at(1, "none").tape
    words = 4 * 32 << 13
    assert words == 1 << 20
    assert buckets(tape) == [words, 4 * BLOCK + 4 * 32 + words]


def test_a_bucket_is_reduced_as_soon_as_its_gradients_are_there():
    config = {**CONFIG, "vocab_size": 1 << 18, "num_hidden_layers": 1}
    operations = network_from_config(config, sequence=8, recipe="fp32", ddp=2).at(1, "none").tape.operations
    first = next(one.index for one in operations if one.name == "all_reduce")
    last_block = max(one.index for one in operations if one.name == "mm")
    assert first < last_block


def test_only_the_last_micro_step_is_reduced_and_the_results_are_copied_back():
    operations = tape_of(ddp=2, accumulation=3).operations
    assert [one.micro_step for one in operations if one.name == "all_reduce"] == [2]
    assert [one.name for one in operations].count("copy_") == 21


def test_a_second_iteration_has_the_buckets_of_the_first():
    network = network_from_config(CONFIG, sequence=8, recipe="fp32", ddp=2)
    tape = record_step(network.config, network.config_options, network.recipe, 2, "none", iterations=2)
    assert len(buckets(tape)) == 1
    assert [one.name for one in tape.operations].count("all_reduce") == 2
