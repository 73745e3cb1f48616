"""A model's recorded step, run through the reference model as a real run, is found again in its snapshot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.report.screen import format_as_text
from buddysim.report.snapshot_screen import snapshot_parts
from buddysim.training.against.memory_snapshot import snapshot_against
from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.caching_allocator import AllocatorSettings, replay_tape
from buddysim.training.caching_allocator.snapshot.comparison import compare_with_snapshot
from buddysim.training.recorded_step.from_config import ConfigNetwork, network_from_config
from buddysim.training.recorded_step.run import record_step
from buddysim.training.request import TrainingRequest
from tests.training.caching_allocator.recorded import BACKWARD, FORWARD, OPTIMIZER, SETUP, RecordedAllocator

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 128,
    "intermediate_size": 344,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
FRAMES = {"setup": SETUP, "forward": FORWARD, "backward": BACKWARD, "optimizer": OPTIMIZER}
WORKSPACE = 32 << 20


def run(tape: Tape, settings: AllocatorSettings, path: Path, workspace: int = 0) -> Path:
    """Run a tape as PyTorch would, with a snapshot at the end."""
    allocator = RecordedAllocator(settings)
    addresses: dict[int, int] = {}
    threads: set[bool] = set()
    for event in tape.events:
        if isinstance(event, AllocationEvent):
            if event.bytes:
                address = allocator.serve(event.bytes, frames=FRAMES[tape.storages[event.storage].phase])
                assert address is not None
                addresses[event.storage] = address
        elif isinstance(event, FreeEvent):
            if event.bytes:
                allocator.give(addresses[event.storage])
        elif workspace and event.products and (event.phase == "backward") not in threads:
            threads.add(event.phase == "backward")
            allocator.serve(workspace, frames=FRAMES[event.phase])
    return allocator.dump(path)


def first_steps(network: ConfigNetwork) -> Tape:
    """Two iterations of a run of AdamW, from an empty optimizer on."""
    options = network.config_options
    return record_step(network.config, options, network.recipe, 2, "adamw", iterations=2, steady=False)


@pytest.mark.parametrize("text", ["", "expandable_segments:True", "roundup_power2_divisions:4"])
def test_the_same_model_is_equal_in_everything(text: str, tmp_path: Path) -> None:
    tape = network_from_config(CONFIG, sequence=32).at(2, "adamw").tape
    settings = AllocatorSettings.parse(text)
    path = run(tape, settings, tmp_path / "run.pickle")
    comparison = compare_with_snapshot(path, tape)
    assert not comparison.events.differences
    assert comparison.events.equal_blocks == comparison.events.blocks
    assert comparison.events.peak_allocated == comparison.replay.peak_allocated_bytes
    assert comparison.events.peak_reserved == comparison.replay.peak_reserved_bytes
    assert comparison.measured.by_kind == comparison.predicted.by_kind
    assert comparison.measured.by_kind["gradients"] > 0
    assert comparison.measured.by_kind["temporaries"] > 0
    assert comparison.differences() == []
    content = json.loads(json.dumps(comparison.to_dict()))
    assert content["measured"] == content["simulated"]
    assert content["settings"] == settings.text()
    assert "Every block at the peak" in format_as_text(snapshot_parts(comparison))


def test_another_sequence_shows_in_what_is_saved(tmp_path: Path) -> None:
    network = network_from_config(CONFIG, sequence=64)
    path = run(network.at(2, "none").tape, AllocatorSettings(), tmp_path / "run.pickle")
    comparison = compare_with_snapshot(path, network_from_config(CONFIG, sequence=32).at(2, "none").tape)
    assert not comparison.events.differences
    assert comparison.predicted.by_kind["saved activations"] < comparison.measured.by_kind["saved activations"]
    rows = comparison.differences()
    assert [abs(row.bytes) for row in rows] == sorted((abs(row.bytes) for row in rows), reverse=True)
    text = format_as_text(snapshot_parts(comparison), 80)
    assert "saved activations" in text
    assert max(len(line) for line in text.splitlines() if str(path) not in line) <= 80


def test_a_request_is_compared_with_the_workspaces_of_its_machine(tmp_path: Path) -> None:
    """Both threads of an H100 take 32 MiB for cuBLAS; the first update of a run makes the optimizer's state."""
    network = network_from_config(CONFIG, sequence=32)
    path = run(first_steps(network), AllocatorSettings(), tmp_path / "run.pickle", WORKSPACE)
    request = TrainingRequest.of(network=network, batch=2, machine="h100-sxm")
    comparison = snapshot_against(path, request)
    assert comparison.replay.peak_allocated_bytes == comparison.events.peak_allocated
    assert comparison.replay.peak_reserved_bytes == comparison.events.peak_reserved
    assert comparison.replay.peak_allocated_bytes > 2 * WORKSPACE
    assert comparison.predicted.by_kind == comparison.measured.by_kind
    assert sum(comparison.predicted.by_kind.values()) == comparison.replay.peak_allocated_bytes
    assert comparison.differences() == []


def test_the_command_line_compares_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the screen and as JSON; what isn't a snapshot gets one line."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    config = str(tmp_path / "config.json")
    path = run(
        first_steps(network_from_config(config, sequence=32)), AllocatorSettings(), tmp_path / "run.pickle", WORKSPACE
    )
    command = ["train", config, "--batch", "2", "--sequence", "32", "--machine", "h100-sxm", "--against", str(path)]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "Every block at the peak" in shown
    assert max(len(line) for line in shown.splitlines() if str(path) not in line) <= 80
    assert main([*command, "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["measured"] == content["simulated"]
    assert content["simulated"]["by_kind"]["optimizer state"] > 0
    path.write_bytes(b"\x80\x04cos\nsystem\n.")
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"buddysim: error: {path}")
    assert len(error.splitlines()) == 1


def test_a_network_without_a_record_is_refused(tmp_path: Path) -> None:
    network = network_from_config(CONFIG, sequence=32)
    path = run(network.at(1, "none").tape, AllocatorSettings(), tmp_path / "run.pickle")
    with pytest.raises(BuddysimError, match=r"expected a config\.json"):
        snapshot_against(path, TrainingRequest.of(network="alexnet-cifar10", batch=4))


def test_a_tape_in_too_little_memory_fails_at_the_request_that_exceeds_it() -> None:
    tape = network_from_config(CONFIG, sequence=32).at(2, "adamw").tape
    whole = replay_tape(tape)
    assert whole.failure is None
    assert whole.peak_requested_bytes == tape.peak_bytes()
    assert whole.reserved[-1][1] == whole.peak_reserved_bytes
    part = replay_tape(tape, capacity=whole.peak_allocated_bytes // 2)
    assert part.failure is not None
    event, failure = part.failure
    assert failure.requested == tape.events[event].bytes  # type: ignore[union-attr]
    assert part.peak_reserved_bytes <= whole.peak_allocated_bytes // 2


def test_what_another_stream_writes_first_is_of_that_stream() -> None:
    """30 MiB that the compute stream has given back don't serve the gather; those of the gather serve it again."""
    with Tape() as tape:
        size = (30 << 20) // 4
        tape.launch("fill_", [], [tape.empty((size,), float32, "empty")])
        for _ in range(2):
            tape.launch("all_gather", [], [tape.empty((size,), float32, "empty")], stream="gather")
    assert replay_tape(tape).peak_reserved_bytes == 60 << 20
    assert replay_tape(tape).peak_allocated_bytes == 30 << 20


def test_wrong_settings_of_the_allocator_get_one_line() -> None:
    with pytest.raises(BuddysimError, match="expandable_segments"):
        network_from_config(CONFIG, alloc_conf="expandable_segment:True")
