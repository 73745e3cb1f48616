"""Ten cases of two blocks whose timelines and memory are computed on paper.

A block takes 10 us forward and 20 us backward, saves 4000 bytes and returns 1000; a link of 1 GB/s copies what it saves
in 4 us, one of 100 MB/s in 40 us. `f1` is the first block's forward pass, `b1` its backward pass, `c1` and `p1` the
copies of what it saves, `r1` its recomputation. All begins when the first operation has been launched.
"""

from __future__ import annotations

import pytest

from buddysim.training.autograd.offload import OffloadSettings
from buddysim.training.options.checkpoint_rule import CheckpointRule
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.saving_rules import SavingRules
from tests.training.saving.toy import LAUNCH_PS, Numbers, recorded, timed

BLOCKS = (Numbers(), Numbers())
MICROSECOND = 10**6


def offload(streams: int, stash: int = 1) -> SavingRules:
    """Everything is offloaded."""
    return SavingRules((), OffloadRule(OffloadSettings(streams, stash)))


CASES = {
    # f1 0-10, f2 10-20, b2 20-40, b1 40-60
    "nothing": (SavingRules(), "1 GB/s", 60),
    # f1 f2 0-20, r2 20-30, b2 30-50, r1 50-60, b1 60-80
    "both recomputed": (SavingRules((CheckpointRule(0, 1),)), "1 GB/s", 80),
    # f1 f2 0-20, b2 20-40, r1 40-50, b1 50-70
    "the first recomputed": (SavingRules((CheckpointRule(0, 0),)), "1 GB/s", 70),
    # f1 f2 0-20, r1 r2 20-40, b2 40-60, b1 60-80
    "recomputed as one": (SavingRules((CheckpointRule(0, 1, together=2),)), "1 GB/s", 80),
    # f1 0-10, c1 10-14, f2 14-24, c2 24-28, p2 28-32, b2 32-52, p1 52-56, b1 56-76
    "offloaded without a stream": (offload(0), "1 GB/s", 76),
    # f1 0-10, c1 10-14 next to f2 10-20, c2 20-24 next to b2 20-40 (still there), p1 24-28, b1 40-60
    "offloaded on one stream": (offload(1), "1 GB/s", 60),
    # f1 0-10, f2 10-20, c1 10-50 is waited for, b2 50-70, c2 50-90 is waited for, p1 90-130, b1 130-150
    "offloaded on one slow stream": (offload(1), "100 MB/s", 150),
    # the same, but p1 50-90 next to c2: b1 90-110
    "offloaded on two slow streams": (offload(2), "100 MB/s", 110),
    # f1 0-10, f2 10-20, b2 20-40, c1 10-50 and c2 50-90 are waited for, p1 90-130, b1 130-150
    "offloaded on one slow stream, all held": (offload(1, stash=5), "100 MB/s", 150),
    # f1 f2 0-20, the second's input copied next to f2 and still there; r2 20-30, b2 30-50, r1 50-60, b1 60-80
    "recomputed, inputs offloaded": (
        SavingRules((CheckpointRule(0, 1),), OffloadRule(OffloadSettings(1, 1))), "1 GB/s", 80,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_timelines_are_those_on_paper(case: str):
    rules, bandwidth, expected = CASES[case]
    assert timed(recorded(BLOCKS, rules), bandwidth).time_ps == expected * MICROSECOND + LAUNCH_PS


#: Bytes that live at most: 1008 of weights, and in the backward pass the loss and its gradient, 4 each.
PEAKS = {
    # f2: what both save, what f2 reads and returns
    "nothing": 1008 + 2 * 4000 + 2 * 1000,
    # r2: its input, what it saves and returns
    "both recomputed": 1016 + 4000 + 2 * 1000,
    # r1 r2: what both save, what r2 reads and returns
    "recomputed as one": 1016 + 2 * 4000 + 2 * 1000,
    # b1: what p1 brought, the gradients of its result and of its input
    "offloaded without a stream": 1016 + 4000 + 2 * 1000,
    # f2: what it saves, what it reads and returns; what the first saves, whose copy nothing has waited for
    "offloaded on one stream": 1008 + 2 * 4000 + 2 * 1000,
}


@pytest.mark.parametrize("case", PEAKS)
def test_peaks_are_those_on_paper(case: str):
    assert recorded(BLOCKS, CASES[case][0]).peak_bytes() == PEAKS[case]


def test_bytes_offloaded_are_bytes_fetched_or_still_there():
    tape = recorded(BLOCKS, offload(1))
    copies = [one.copy for one in tape.operations if one.copy is not None]
    assert [(one.direction, one.bytes) for one in copies] == [("offload", 4000), ("offload", 4000), ("prefetch", 4000)]
    assert all(buffer.freed is not None for buffer in tape.host_buffers)
    without = [one.copy for one in recorded(BLOCKS, offload(0)).operations if one.copy is not None]
    assert [one.direction for one in without] == ["offload", "offload", "prefetch", "prefetch"]


def test_a_copy_to_the_host_follows_the_computation_whose_tensors_it_copies():
    operations = recorded(BLOCKS, offload(2)).operations
    forward = [one.index for one in operations if one.name == "work"]
    assert len(forward) == 2
    assert [one.after for one in operations if one.name == "offload"] == [(index,) for index in forward]
