"""Steps of a small model whose optimizer, or whose weights too, are the host's: copies, order, memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.records import TracedOperation
from buddysim.training.autograd.tape import Tape
from buddysim.training.driver import simulate
from buddysim.training.options.optimizer_offload import OptimizerOffload
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.options.weights_offload import WeightsOffload
from buddysim.training.recorded_step.from_config import network_from_config

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 500,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
}


def recorded(rules: SavingRules, **options: Any) -> Tape:
    """A step on the tape."""
    tape: Tape = network_from_config(CONFIG, sequence=32, **options)._recorded(2, "adamw", rules).tape
    return tape


def named(tape: Tape, name: str) -> list[TracedOperation]:
    """Operations of a name."""
    return [one for one in tape.operations if one.name == name]


def moved(operations: list[TracedOperation]) -> int:
    """Bytes of their copies."""
    return sum(one.copy.bytes for one in operations if one.copy is not None)


def peak_of(tape: Tape, kind: str) -> int:
    """The most bytes of a kind that live at once."""
    live = peak = 0
    for event in tape.events:
        if not isinstance(event, TracedOperation) and tape.storages[event.storage].kind == kind:
            live += event.bytes if tape.storages[event.storage].allocated == tape.events.index(event) else -event.bytes
            peak = max(peak, live)
    return peak


#: Elements of weights of 4096 and more: two of attention and three of the MLP in a block, embedding and head.
LARGE = 3 * (2 * 64 * 64 + 3 * 64 * 128) + 2 * 500 * 64
#: Of the others: keys, values and two norms in a block, and the last norm.
SMALL = 3 * (2 * 64 * 32 + 2 * 64) + 64
ALL = LARGE + SMALL


def test_gradients_go_down_and_weights_come_up_as_torchao_does_it():
    tape = recorded(SavingRules(optimizer=OptimizerOffload()))
    down, up, updates = named(tape, "offload"), named(tape, "prefetch"), named(tape, "host_update")
    assert moved(down) == moved(up) == 2 * LARGE
    assert len(down) == len(up) == len(updates) == 3 * 5 + 2
    assert [one.reads[0].shape for one in down] == [one.writes[0].shape for one in up]
    assert all(one.phase == "backward" for one in down)
    assert all(one.phase == "optimizer" for one in (*up, *updates))
    copies = sorted([*down, *up], key=lambda one: one.index)
    for before, one in pairwise(copies):  # one stream
        assert before.index in one.after
    for arrived, update, back in zip(down, updates, up, strict=True):
        assert arrived.index in update.after
        assert update.index in back.after
    # the state of small weights alone is on the GPU: two estimates in 16 bits
    assert sum(one.bytes for one in tape.storages if one.kind == "optimizer") == 4 * SMALL


def test_gradients_stay_on_request():
    dropped, resident = (
        recorded(SavingRules(optimizer=OptimizerOffload(keep_gradients=keep))) for keep in (False, True)
    )
    assert peak_of(resident, "gradient") == 2 * ALL
    assert peak_of(dropped, "gradient") < ALL


def test_deepspeed_moves_single_precision_between_the_computations():
    tape = recorded(SavingRules(optimizer=OptimizerOffload("deepspeed")))
    down, up, updates = named(tape, "offload"), named(tape, "prefetch"), named(tape, "host_update")
    assert all(one.stream == "compute" for one in (*down, *up))
    assert moved(down) == moved(up) == 4 * ALL
    assert len(up) == 1
    assert len(updates) == len(down)
    assert all(down[-1].index in one.after for one in updates)
    assert peak_of(tape, "master") == 4 * ALL  # all weights in single precision, before they are copied
    assert not [one for one in tape.storages if one.kind == "optimizer"]


def test_a_delayed_update_begins_before_the_forward_pass():
    tape = recorded(SavingRules(optimizer=OptimizerOffload(delayed=True)))
    updates = named(tape, "host_update")
    first = next(one for one in tape.operations if one.stream == "compute")
    assert all(one.index < first.index and not one.after for one in updates)
    assert moved(named(tape, "offload")) == moved(named(tape, "prefetch"))


def test_weights_are_fetched_block_by_block():
    tape = recorded(SavingRules(weights=WeightsOffload(), optimizer=OptimizerOffload()))
    fetched = named(tape, "prefetch")
    rest = 2 * 500 * 64 + 64
    blocks = ALL - rest
    assert moved(fetched) == 2 * (rest + 2 * blocks)
    assert moved(named(tape, "offload")) == 2 * ALL
    assert peak_of(tape, "gathered") == 2 * (rest + 2 * blocks // 3)
    assert peak_of(tape, "parameter") == 0
    alone = recorded(SavingRules(weights=WeightsOffload(0), optimizer=OptimizerOffload()))
    assert peak_of(alone, "gathered") == 2 * (rest + blocks // 3)
    assert all(one.stream == "compute" for one in named(alone, "prefetch"))


def test_a_weight_on_a_drive_is_read_before_it_is_fetched():
    tape = recorded(SavingRules(weights=WeightsOffload(device="nvme"), optimizer=OptimizerOffload(device="nvme")))
    fetched = [one for one in named(tape, "prefetch") if one.copy is not None]
    reads = {one.index: one for one in named(tape, "nvme_read")}
    assert fetched
    for one in fetched:
        (read,) = one.after
        assert read < one.index
        assert reads[read].task.bytes == one.copy.bytes


def test_drives_are_read_before_an_update_and_written_behind_it():
    tape = recorded(SavingRules(optimizer=OptimizerOffload(device="nvme")))
    reads, updates, writes = (named(tape, name) for name in ("nvme_read", "host_update", "nvme_write"))
    for read, update, write in zip(reads, updates, writes, strict=True):
        assert read.index in update.after
        assert write.after == (update.index,)
    assert reads[2].index > updates[0].index  # no more than one is read ahead
    in_memory = recorded(SavingRules(optimizer=OptimizerOffload()))
    assert tape.host_bytes < in_memory.host_bytes


@pytest.mark.parametrize(
    "options", [{"fsdp": 2}, {"optimizer_in_backward": True}, {"recipe": "amp-fp16"}, {"fsdp": 2, "optimizer": "sgd"}]
)
def test_what_needs_gradients_on_the_gpu_is_refused(options: dict[str, Any]):
    for scheme in ("offload-optimizer", "offload-weights"):
        with pytest.raises(BuddysimError, match="expected"):
            simulate(network_from_config(CONFIG), 2, "a100-80", scheme, **options)


def test_without_an_optimizer_there_is_nothing_to_do():
    for scheme in ("offload-optimizer", "offload-optimizer-delayed", "offload-weights"):
        result = simulate(network_from_config(CONFIG), 2, "a100-80", scheme, optimizer="none")
        assert "no optimizer" in str(result.counters["nothing_to_do"])
        assert result.counters["nothing_to_do"] == simulate("alexnet", 4, "a100-80", scheme).counters["nothing_to_do"]
