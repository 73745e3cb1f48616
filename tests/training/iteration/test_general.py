"""Each feature of iteration programs is used by a scheme, with timeline and memory computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.base import plugin_modules
from buddysim.base.errors import BuddysimError
from buddysim.training import schemes
from buddysim.training.driver import simulate_plan
from buddysim.training.epochs import simulate_epochs
from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.allocators import StaticGroups
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.iteration.program import Program, ProgramTensor, Step
from buddysim.training.outcome import IterationOutcome
from tests.training.doubles import MS, Cost, Link, chain, machine
from tests.training.iteration import general_scheme

MB = 1_000_000
LETTER = {"forward": "F", "backward": "B", "encode": "E", "decode": "D", "update": "U"}


@pytest.fixture(autouse=True)
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plugin_modules.loaded, Path(general_scheme.__file__), general_scheme)


def outcome(scheme: str, kinds: str = "ccc", gb_per_s: float = 1, **options) -> IterationOutcome:
    network, cost = chain(kinds), Cost(default_ps=2 * MS)
    cost.times |= {(layer.name, p): MS for layer in network.layers for p in ("backward_data", "backward_filter")}
    wire = Link(int(gb_per_s * 10**9), int(gb_per_s * 10**9))
    training_options = TrainingOptions(**options)
    plan = schemes.REGISTRY.find(scheme).plan(network, 1, machine(link=wire), cost, scheme, training_options)
    return simulate_plan(network, 1, machine(link=wire), cost, plan, training_options)


def steps(out: IterationOutcome) -> list[tuple[str, float, float, float]]:
    """Return name, start and end in ms, and MB allocated, of each step but the input's."""
    held = memory_usage.totals(out.memory_over_time()[1])
    times = zip(out.schedule.step_start_ps, out.schedule.step_end_ps, strict=True)
    rows = [
        (LETTER[step.pass_] + str(step.layer), start / MS, end / MS, held[step.index] / MB)
        for step, (start, end) in zip(out.program.steps, times, strict=True)
    ]
    return [row for row in rows if row[0] != "F0"]


def tasks(out: IterationOutcome) -> list[tuple[str, float, float]]:
    return [(r.stream, r.start_ps / MS, r.end_ps / MS) for r in out.schedule.records if r.task is not None]


def test_maps_are_encoded_after_their_last_reader_and_decoded_before_the_next():
    out = outcome("test-encoded")
    assert steps(out) == [
        ("F1", 0, 2, 2), ("E0", 2, 2.25, 2.25), ("F2", 2.25, 4.25, 2.25), ("E1", 4.25, 4.5, 2.5),
        ("F3", 4.5, 6.5, 2.5), ("E2", 6.5, 6.75, 1.75),
        ("D2", 6.75, 7.25, 1.75), ("B3", 7.25, 9.25, 3.5), ("D1", 9.25, 9.75, 2.5), ("B2", 9.75, 11.75, 3.25),
        ("D0", 11.75, 12.25, 2.25), ("B1", 12.25, 13.25, 2),
    ]  # fmt: skip
    assert (out.pass_ps("encode"), out.pass_ps("decode")) == (3 * MS // 4, 3 * MS // 2)
    peak = {kind: byte_count / MB for kind, byte_count in out.all_layers.usage.at_peak.items() if byte_count}
    assert peak == {"encoded_maps": 0.5, "decoded_maps": 1, "gradient_maps": 2}  # at B3
    assert out.stashed_bytes == 750_000
    assert outcome("test-plain").stashed_bytes == 3 * MB


def test_backward_steps_that_read_encodings_need_no_decoded_copy():
    out = outcome("test-read-encoded")
    assert steps(out)[6:] == [("B3", 6.75, 8.75, 2.75), ("B2", 8.75, 10.75, 2.5), ("B1", 10.75, 11.75, 1.25)]


def test_offloaded_encoding_moves_and_pins_its_bytes():
    out = outcome("test-encoded-moved")
    assert steps(out) == [
        ("E0", 0, 0.25, 1.25), ("F1", 0.25, 2.25, 2.25), ("E1", 2.25, 2.5, 1.25), ("F2", 2.5, 4.5, 2.25),
        ("E2", 4.5, 4.75, 1.25), ("F3", 4.75, 6.75, 2.25),
        ("D2", 6.75, 7.5, 1.25), ("B3", 7.5, 9.5, 3.25), ("D1", 9.5, 10, 2.25), ("B2", 10, 12, 3.25),
        ("D0", 12, 12.5, 2.25), ("B1", 12.5, 13.5, 2),
    ]  # fmt: skip
    assert tasks(out) == [
        ("offload", 0.25, 0.5), ("offload", 2.5, 2.75), ("offload", 4.75, 5),
        ("prefetch", 6.75, 7), ("prefetch", 7.5, 7.75), ("prefetch", 10, 10.25),
    ]  # fmt: skip
    assert out.stall_ps_by_cause() == {"on-demand": MS // 4}
    assert (out.offload_bytes, out.moved_bytes, out.pinned_bytes) == (3 * MB, 1_500_000, 750_000)


def test_stashes_of_feature_maps_are_independent():
    """The input is encoded, Y of layer 1 is offloaded, and Y of layer 2 stays; layers 1, 2 and 3 read them."""
    out = outcome("test-one-tensor")
    assert [name for name, *_ in steps(out)] == ["F1", "E0", "F2", "F3", "B3", "B2", "D0", "B1"]
    assert out.offload_bytes == out.prefetch_bytes == MB


def test_a_later_step_waits_for_a_copy():
    """A copy takes 5 ms. F3 waits for the offload; B3 launches the prefetch, and the step before B1 waits for it."""
    out = outcome("test-later", gb_per_s=0.2)
    assert steps(out) == [
        ("F1", 0, 2, 2), ("F2", 2, 4, 3), ("F3", 4, 6, 4), ("B3", 6, 8, 5), ("B2", 8, 11, 4), ("B1", 11, 12, 2),
    ]  # fmt: skip
    assert tasks(out) == [("offload", 0, 5), ("prefetch", 6, 11)]
    assert out.stall_ps_by_cause() == {"prefetch": MS}
    slower = outcome("test-later", gb_per_s=0.1)  # 10 ms: F3 waits until 10, B2 until 20
    assert slower.stall_ps_by_cause() == {"offload": 4 * MS, "prefetch": 6 * MS}
    assert slower.time_ps == 21 * MS


def test_host_encoding_runs_on_its_own_stream():
    """The host encodes from 1 to 4 ms, and F2 waits for it; it decodes during B2, and the prefetch waits for it."""
    out = outcome("test-host")
    assert steps(out) == [
        ("F1", 0, 2, 2), ("F2", 2, 4, 2), ("F3", 4, 6, 3), ("B3", 6, 8, 4), ("B2", 8, 10.5, 4), ("B1", 10.5, 11.5, 2),
    ]  # fmt: skip
    assert tasks(out) == [("offload", 0, 1), ("host", 1, 4), ("host", 8, 9.5), ("prefetch", 9.5, 10.5)]
    assert out.stall_ps_by_cause() == {"prefetch": MS // 2}  # the host worked next to the computation until 9.5
    assert out.host_ps == 4.5 * MS
    assert out.pinned_bytes == 1_250_000  # the feature map and its code, until F2 is over
    assert not outcome("test-host", gb_per_s=0.25).stall_ps_by_cause().keys() & {"on-demand", "copy-out"}


def test_stall_cause_is_the_host_while_waiting_for_it():
    """Forward steps of 0.25 ms: F2 ends when the host has encoded, at 4 ms."""
    network, cost = chain("ccc"), Cost(default_ps=MS // 4)
    plan = schemes.REGISTRY.find("test-host").plan(network, 1, machine(), cost, "test-host", TrainingOptions())
    out = simulate_plan(network, 1, machine(), cost, plan, TrainingOptions())
    forward = [(stall.layer, stall.cause, stall.ps / MS) for stall in out.schedule.stalls if stall.pass_ == "forward"]
    assert forward == [(1, "offload", 0.75), (2, "host", 2.75)]


def test_a_layers_backward_pass_may_be_two_steps():
    """X is released before dX is allocated: 4 MB at the peak, not 5."""
    out = outcome("test-two-steps")
    assert steps(out)[3:] == [
        ("B3", 6, 7, 4), ("B3", 7, 8, 4), ("B2", 8, 9, 3), ("B2", 9, 10, 3), ("B1", 10, 11, 2),
    ]  # fmt: skip
    assert outcome("test-plain").all_layers.usage.peak_bytes == 5 * MB


def test_plan_selects_in_place_layers():
    apart, in_place = outcome("test-not-in-place", "crc"), outcome("test-plain", "crc")
    assert [row[3] for row in steps(apart)] == [2, 3, 3, 4, 4, 2]
    assert [row[3] for row in steps(in_place)] == [2, 2, 3, 4, 3, 2]
    assert not any(layer.in_place for layer in apart.network.layers)


def test_allocators_by_hand():
    """Y and dY of layer 3 share a region, as do Y of layer 2 and dX of layer 1; the pool rounds to 512 bytes."""
    out = outcome("test-groups")
    together = {}
    for tensor, address in zip(out.program.tensors, out.placement.addresses, strict=True):
        together.setdefault(address, []).append((tensor.kind[0], tensor.layer))
    assert list(together.values()) == [[("f", 0)], [("f", 1)], [("f", 2), ("g", 1)], [("f", 3), ("g", 3)], [("g", 2)]]
    assert {row[3] for row in steps(out)} == {5}  # reserved throughout
    assert out.placement.high_water == 5 * MB
    assert outcome("test-live-set").placement.high_water == 5 * MB
    assert outcome("test-plain").placement.high_water == 5 * 1_000_448


def test_static_groups_report_their_shortfall():
    out = outcome("test-groups", memory_bytes=4_500_000)
    assert not out.fits
    assert out.failure is not None
    assert (out.failure.shortfall_bytes, out.failure.free_bytes) == (500_000, 4_500_000)
    assert out.failure.layer is None
    assert out.out_of_memory.message == "static allocation exceeds the GPU by 488.3 KiB"
    short = outcome("test-live-set", memory_bytes=4_500_000)
    assert short.failure is not None
    assert (short.failure.layer, short.failure.pass_, short.failure.shortfall_bytes) == (3, "backward", 500_000)


def test_stashed_encodings_may_have_groups_of_their_own():
    """Encoded data of 0.25 MB share no region; of the other tensors at most 3 MB are live at once."""
    out = outcome("test-own-groups")
    sizes = sorted(group.byte_count for group in out.placement.groups or ())
    assert sizes == [250_000] * 3 + [MB] * 3


def by_lives(*lives: tuple[int, int, int]) -> Program:
    """Return a program of tensors with these sizes, first and last steps."""
    tensors = tuple(ProgramTensor(i, 1, "feature_maps", size, "features") for i, (size, _, _) in enumerate(lives))
    made = []
    for index in range(max(last for _, _, last in lives) + 1):
        allocate = tuple(i for i, (_, first, _) in enumerate(lives) if first == index)
        release = tuple(i for i, (_, _, last) in enumerate(lives) if last == index)
        made.append(Step(index, 1, "forward", 0, "features", allocate=allocate, release=release))
    return Program(tuple(made), tensors, (), ())


def test_static_groups_agree_with_the_example_of_gist():
    """In Fig. 7, X (10 MB) and A to D (up to 8 MB) take 18 MB, and 12 MB with X encoded (2 MB) in between."""
    others = [(8 * MB, 2, 3), (6 * MB, 4, 5), (7 * MB, 6, 7), (5 * MB, 8, 9)]
    stashed = by_lives((10 * MB, 0, 11), *others)
    alone = StaticGroups().allocate(stashed, None)
    assert alone.high_water == 18 * MB
    assert alone.addresses == (0, 10 * MB, 10 * MB, 10 * MB, 10 * MB)
    encoded = by_lives((10 * MB, 0, 1), (2 * MB, 1, 10), (10 * MB, 10, 11), *others)
    shared = StaticGroups().allocate(encoded, None)
    assert shared.high_water == 12 * MB
    assert shared.addresses == (0, 10 * MB, 0, 0, 0, 0, 0)


def test_decisions_change_from_epoch_to_epoch():
    network, cost = chain("ccc"), Cost(default_ps=2 * MS)
    run = simulate_epochs(network, 1, "titan-x", "test-epochs", [0, 1, 2], cost=cost)
    assert [out.stashed_bytes for out in run.outcomes] == [3 * MB, 2 * MB + 500_000, 2 * MB + 250_000]
    assert [out.time_ps / MS for out in run.outcomes] == [16, 16.75, 16.75]
    assert run.time_ps([100, 10, 1]) == round((100 * 16 + 11 * 16.75) * MS)
    plain = simulate_epochs(network, 1, "titan-x", "vdnn-all-m", [0, 1, 2], cost=cost)
    assert plain.outcomes[0] is plain.outcomes[2]  # it has no say in the epoch
    with pytest.raises(BuddysimError, match=r"epochs \[\]: expected one or more"):
        simulate_epochs(network, 1, "titan-x", "test-plain", [], cost=cost)
