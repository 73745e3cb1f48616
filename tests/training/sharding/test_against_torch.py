"""What one of two processes allocates and frees in PyTorch under FSDP2, against the record, to the byte."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import bfloat16, float32
from buddysim.training.autograd.records import CUDA_SCRATCH, AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import active_tape
from buddysim.training.sharding.data_parallel import MIB, DataParallel
from buddysim.training.sharding.fully_sharded import FsdpPolicy, FullySharded
from tests.training.sharding.torch_group import BUCKETS, run_group
from tests.training.transformers import configs
from tests.training.transformers.symbolic import symbolic_step

pytestmark = pytest.mark.slow

#: How often a run is repeated that isn't equal: a thread of gloo may still refer to a buffer.
ATTEMPTS = 3


def sizes_of_tape(tape: Tape) -> list[int]:
    """Allocations and frees behind the setup, below 0 for frees."""
    return [
        event.bytes if isinstance(event, AllocationEvent) else -event.bytes
        for event in tape.events
        if isinstance(event, AllocationEvent | FreeEvent)
        and tape.storages[event.storage].phase != "setup"
        and tape.storages[event.storage].producer != CUDA_SCRATCH
    ]


def in_order(sizes: list[int]) -> list[int]:
    """Neither frees between two allocations nor allocations between two frees have an order of their own."""
    ordered: list[int] = []
    for _, run in groupby((size for size in sizes if size), key=lambda size: size > 0):
        ordered += sorted(run)
    return ordered


def assert_equal(folder: Path, processes: int, simulated: list[int], **setup: Any) -> Path:
    """Compare with PyTorch's first process; return the folder that it wrote."""
    for attempt in range(ATTEMPTS):
        inner = folder / str(attempt)
        inner.mkdir()
        measured = in_order(run_group(inner, processes, **setup))
        if measured == in_order(simulated):
            return inner
    assert in_order(simulated) == measured
    return inner


def fsdp_sizes(policy: FsdpPolicy, recipe: Any = "fp32") -> list[int]:
    def shard(model: Any) -> None:
        FullySharded(active_tape(), model, policy)

    tape = symbolic_step(configs.CONFIGS["LlamaForCausalLM"], configs.BATCH, configs.TOKENS, recipe, "eager", shard)
    return sizes_of_tape(tape)


MIXED = {"param_dtype": "bfloat16", "reduce_dtype": "float32"}


@pytest.mark.parametrize("processes", [1, 2])
def test_fsdp_allocates_as_measured(tmp_path: Path, processes: int):
    assert_equal(tmp_path, processes, fsdp_sizes(FsdpPolicy(processes)), kind="fsdp")


@pytest.mark.parametrize("processes", [1, 2])
def test_fsdp_with_masters_allocates_as_measured(tmp_path: Path, processes: int):
    policy = FsdpPolicy(processes, own_dtype=float32, param_dtype=bfloat16, reduce_dtype=float32)
    assert_equal(tmp_path, processes, fsdp_sizes(policy, "bf16"), kind="fsdp", policy=MIXED)


def test_fsdp_that_reduces_in_fp32_allocates_as_measured(tmp_path: Path):
    sizes = fsdp_sizes(FsdpPolicy(2, reduce_dtype=float32), "bf16")
    assert_equal(tmp_path, 2, sizes, kind="fsdp", dtype="bfloat16", policy={"reduce_dtype": "float32"})


def test_fsdp_without_resharding_allocates_as_measured(tmp_path: Path):
    sizes = fsdp_sizes(FsdpPolicy(2, reshard_after_forward=False))
    assert_equal(tmp_path, 2, sizes, kind="fsdp", options={"reshard_after_forward": False})


def test_fsdp_that_gathers_a_block_ahead_allocates_as_measured(tmp_path: Path):
    assert_equal(tmp_path, 2, fsdp_sizes(FsdpPolicy(2, gather_ahead=1)), kind="fsdp", gather_ahead=1)


@pytest.mark.parametrize("cap", [0.01, 0.03])
def test_ddp_has_the_buckets_that_are_measured_and_allocates_nothing_else(tmp_path: Path, cap: float):
    limit = int(cap * MIB)
    tape = Tape()
    ddp = DataParallel(2, limit, limit)

    def wrap(model: Any) -> None:
        nonlocal tape
        tape = active_tape()
        ddp.model_built(SimpleNamespace(model=model))  # type: ignore[arg-type]
        ddp.is_reducing = True
        tape.after_backward.append(ddp.finish)

    symbolic_step(configs.CONFIGS["LlamaForCausalLM"], configs.BATCH, configs.TOKENS, "fp32", "eager", wrap)
    sizes = sizes_of_tape(tape)
    folder = assert_equal(tmp_path, 2, sizes, kind="ddp", options={"bucket_cap_mb": cap})
    buckets = json.loads((folder / BUCKETS).read_text(encoding="utf-8"))
    assert [one.bytes for one in ddp.buckets] == buckets
