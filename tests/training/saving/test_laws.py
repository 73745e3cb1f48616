"""Laws of any rules on any blocks: of time against the link, of bytes out and back, of memory."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.training.autograd.offload import OffloadSettings
from buddysim.training.autograd.records import TracedOperation
from buddysim.training.options.checkpoint_rule import CheckpointRule
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.saving_rules import SavingRules
from tests.training.saving.toy import NANOSECOND, Numbers, recorded, timed

KILOBYTES = st.integers(1, 40).map(lambda count: 1000 * count)
BLOCKS = st.lists(
    st.builds(
        Numbers,
        forward=st.integers(1, 40_000),
        backward=st.integers(1, 80_000),
        saved=KILOBYTES,
        result=st.just(1000),
    ),
    min_size=1,
    max_size=7,
)


def spent_ps(operation: TracedOperation) -> int:
    """The time of a computation."""
    return sum(NANOSECOND * product.m for product in operation.products)


@st.composite
def rules_of(draw: st.DrawFn, blocks: int, offloads: bool = False) -> SavingRules:
    """Rules of a model of so many blocks: regions one after the other, gaps between them."""
    checkpoints, start = [], 0
    while start < blocks:
        length, together = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        if draw(st.booleans()):
            checkpoints.append(CheckpointRule(start, min(start + length, blocks) - 1, together))
        start += length
    streams, stash = draw(st.integers(0, 2)), draw(st.integers(1, 4))
    offload = OffloadRule(OffloadSettings(streams, stash, draw(st.sampled_from((0, 1024, 10_000)))))
    return SavingRules(tuple(checkpoints), offload if offloads or draw(st.booleans()) else None)


@st.composite
def steps(draw: st.DrawFn, offloads: bool = False) -> tuple[list[Numbers], SavingRules]:
    """Blocks and rules."""
    blocks = draw(BLOCKS)
    return blocks, draw(rules_of(len(blocks), offloads))


@settings(max_examples=20, deadline=None)
@given(steps(offloads=True))
def test_a_faster_link_is_never_slower(step: tuple[list[Numbers], SavingRules]):
    tape = recorded(*step)
    times = [timed(tape, f"{rate} MB/s").time_ps for rate in (10, 50, 300, 1000, 10_000)]
    assert times == sorted(times, reverse=True)
    computing = sum(spent_ps(one) for one in tape.operations)
    assert times[-1] >= computing


@settings(max_examples=20, deadline=None)
@given(steps())
def test_what_is_offloaded_is_fetched_unless_it_is_still_there(step: tuple[list[Numbers], SavingRules]):
    blocks, rules = step
    tape = recorded(blocks, rules)
    copies = [one.copy for one in tape.operations if one.copy is not None]
    out = [one.buffer for one in copies if one.direction == "offload"]
    back = [one.buffer for one in copies if one.direction == "prefetch"]
    assert out == sorted(set(out))
    assert len(back) == len(set(back))
    assert set(back) <= set(out)
    stash = rules.offload.settings.stash if rules.offload is not None and rules.offload.settings.streams else 0
    assert len(out) - len(back) <= stash
    assert all(buffer.freed is not None for buffer in tape.host_buffers)
    sizes = {buffer: tape.host_buffers[buffer].bytes for buffer in out}
    assert all(one.bytes == sizes[one.buffer] for one in copies)


@settings(max_examples=20, deadline=None)
@given(steps())
def test_memory_at_the_end_of_the_forward_pass_is_what_stays_and_what_is_in_flight(
    step: tuple[list[Numbers], SavingRules],
):
    blocks, rules = step
    tape = recorded(blocks, rules)
    live: dict[int, int] = {}
    for event in tape.events[: next(n for n, one in enumerate(tape.events) if getattr(one, "phase", "") == "backward")]:
        if hasattr(event, "storage"):
            live.pop(event.storage) if event.storage in live else live.__setitem__(event.storage, event.bytes)
    recomputed = {number for rule in rules.checkpoints for region in rule.regions() for number in region}
    inputs = {region[0] for rule in rules.checkpoints for region in rule.regions()} - {0}
    least = rules.offload.settings.min_bytes if rules.offload is not None else None
    sizes = [one.saved for number, one in enumerate(blocks) if number not in recomputed] + [1000 for _ in inputs]
    stays = sum(size for size in sizes if least is None or size < max(1, least))
    streams = rules.offload is not None and rules.offload.settings.streams
    in_flight = rules.offload.settings.stash * max(sizes, default=0) if rules.offload is not None and streams else 0
    others = 1000 + 4 * len(blocks) + 2 * 1000 + 8  # weights, the last result, the loss and its gradient
    assert sum(live.values()) <= stays + in_flight + others


@settings(max_examples=15, deadline=None)
@given(steps())
def test_recomputation_takes_the_forward_time_of_what_is_recomputed(step: tuple[list[Numbers], SavingRules]):
    blocks, rules = step
    again = sum(spent_ps(one) for one in recorded(blocks, rules).operations if one.phase == "recompute")
    regions = [region for rule in rules.checkpoints for region in rule.regions()]
    assert again == 1000 * sum(blocks[number].forward for region in regions for number in region)
