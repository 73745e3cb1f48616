"""Ranges that `train` takes from `plot buddy-transformers`: those of its numbers, weighted by bytes at the peak."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training import simulate
from buddysim.training.autograd.dtypes import bfloat16
from buddysim.training.autograd.tape import Tape
from buddysim.training.contents.buddy_study import DATA, memory_ratio, peak_amounts, slowdown_range, step_slowdown
from tools.write_buddy_study import study_text


def test_the_data_are_those_of_the_study() -> None:
    assert DATA.read_text(encoding="utf-8") == study_text()
    assert slowdown_range("attention").high > slowdown_range("adamw").high
    assert step_slowdown().low == slowdown_range("rms-norm").low


def test_memory_by_hand() -> None:
    """Squares in fp16 compress to a quarter, and are half of Adam's state; means by 1.0575."""
    only_state = memory_ratio({("optimizer", "float16"): 200})
    assert (only_state.low, only_state.high) == (1.0, pytest.approx(200 / (100 / 4 + 100 / 1.0575)))
    with_inputs = memory_ratio({("optimizer", "float16"): 200, ("input", "int64"): 100, ("weights", ""): 100})
    assert with_inputs.high == pytest.approx(400 / (200 + 100 / 4 + 100 / 1.0575))
    assert memory_ratio({}).high == 1


def test_tensors_of_the_peak() -> None:
    tape = Tape(bfloat16)
    weight = tape.empty((4, 8), bfloat16, "parameter", kind="parameter")
    passing = tape.empty((64,), bfloat16, "x", kind="activation")
    del passing
    later = tape.empty((8,), bfloat16, "y", kind="gradient")
    amounts = peak_amounts(tape)
    assert sum(amounts.values()) == tape.peak_bytes() == 64 + 128
    assert {kind for kind, _ in amounts} == {"parameter", "activation"}
    assert weight.shape
    assert later.shape


def test_both_ends_scale_a_training() -> None:
    network, batch = "llama-3.2-1b", 1
    ends = {
        end: simulate(network, batch, "h100-sxm", "buddy-scaled", sequence=64, buddy_study=end)
        for end in ("pessimistic", "optimistic")
    }
    worse, better = (ends[end].counters for end in ends)
    assert worse["memory.capacity_bytes"] < better["memory.capacity_bytes"]
    assert worse["compute_ms"] > better["compute_ms"]
    assert "memory 1.000 to 1." in ends["optimistic"].assumptions["buddy"]


@pytest.mark.parametrize(
    ("network", "end", "expected"),
    [("llama-3.2-1b", "best", "expected pessimistic or optimistic"), ("vgg16", "optimistic", "recorded network")],
)
def test_what_is_refused(network: str, end: str, expected: str) -> None:
    with pytest.raises(BuddysimError, match=expected):
        simulate(network, 1, "h100-sxm", "buddy-scaled", buddy_study=end)
