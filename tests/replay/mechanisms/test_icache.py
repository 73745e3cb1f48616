"""Instruction caches (docs/reference/replay-rules.md, Instruction cache): a miss of 8 instructions takes 50 ns, a store
100 ns."""

from buddysim.machine import Machine
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, grid, machine, store

LINE = 8 * 16


def cold(prefetch: int = 0, latency_ns: int = 50, **overrides: object) -> Machine:
    return machine(sm__icache_miss_latency=f"{latency_ns} ns", sm__icache_prefetch_lines=prefetch, **overrides)


def ends(config, *launches):
    return run_launches(config, launches)[2]


def end(config, *warps, code_bytes=LINE, tail=None):
    """Return the end of a kernel of one thread block, in ps."""
    return ends(config, Launch([grid(warps, tail=tail)], warps=len(warps), code_bytes=code_bytes))[0]


def test_first_line_of_a_kernel_misses():
    assert end(cold(), [store(0)]) == (50 + 1 + 100) * NS
    assert end(machine(), [store(0)]) == (1 + 100) * NS


def test_icache_is_disabled_without_code_size():
    assert end(cold(), [store(0)], code_bytes=0) == (1 + 100) * NS


def test_a_line_is_fetched_when_a_warp_reaches_it():
    """Sixteen instructions, one per ns: the second line is requested at 50 + 8.

    A critical path of 48 cycles spreads 24 instructions: the second line, requested with the first, arrives in time;
    the third is requested at 41 + 16 and reached at 41 + 32.
    """
    assert end(cold(), [store(0, gap_instructions=15)], code_bytes=2 * LINE) == (16 + 50 + 50 + 100) * NS
    assert end(cold(1), [store(0, gap_instructions=15)], code_bytes=2 * LINE) == (16 + 50 + 100) * NS
    spread = [store(0, gap_instructions=23, critical_path_cycles=48)]
    assert end(cold(1, 41), spread, code_bytes=3 * LINE) == (48 + 41 + (41 - 16) + 100) * NS
    assert end(cold(1, 16), spread, code_bytes=3 * LINE) == (48 + 16 + 100) * NS
    assert end(cold(1, 17), spread, code_bytes=3 * LINE) == (48 + 17 + 1 + 100) * NS


def test_ninth_instruction_is_on_the_next_line():
    assert end(cold(), [store(0, gap_instructions=7)], code_bytes=LINE + 16) == (8 + 50 + 100) * NS
    assert end(cold(), [store(0, gap_instructions=8)], code_bytes=LINE + 16) == (9 + 50 + 50 + 100) * NS
    assert end(cold(), [store(0, gap_instructions=8)], code_bytes=LINE + 15) == (9 + 50 + 100) * NS


def test_prefetched_lines_are_requested_when_a_line_is_reached_or_arrives():
    """One line is prefetched: the first two arrive at 50; the second is reached at 58, so the third arrives at 108.

    The third is reached at 66, so the fourth is requested when the third has arrived, and arrives at 158.
    """
    assert end(cold(1), [store(0, gap_instructions=23)], code_bytes=3 * LINE) == (24 + 50 + 42 + 100) * NS
    assert end(cold(1), [store(0, gap_instructions=31)], code_bytes=4 * LINE) == (32 + 50 + 42 + 42 + 100) * NS
    assert end(cold(2), [store(0, gap_instructions=31)], code_bytes=4 * LINE) == (32 + 50 + 34 + 100) * NS
    assert end(cold(3), [store(0, gap_instructions=31)], code_bytes=4 * LINE) == (32 + 50 + 100) * NS


def test_repeated_instructions_hit():
    """Three iterations of a loop of eight instructions."""
    assert (
        end(cold(), [store(0, gap_instructions=7), store(1, gap_instructions=7), store(2, gap_instructions=7)])
        == (24 + 50 + 100) * NS
    )


def test_tail_of_a_warp_is_fetched():
    tail = {"tail_gap_instructions": 8, "tail_critical_path_cycles": 200}
    assert end(cold(), [store(0, gap_instructions=7)], code_bytes=2 * LINE, tail=tail) == (8 + 50 + 50 + 200) * NS


def test_warps_of_an_sm_fetch_a_line_once():
    """The second warp starts at 49 and reaches the line then. Both are ready at 51; the first issues first."""
    first, second = [store(0)], [store(1)]
    assert end(cold(kernel__warp_launch_interval="49 ns"), first, second) == (52 + 100) * NS
    assert end(cold(kernel__warp_launch_interval="60 ns"), first, second) == (61 + 100) * NS


def test_a_warp_that_waits_for_instructions_takes_no_issue_slots():
    """The second warp issues at 60, while the first one waits for its second line."""
    assert (
        end(cold(), [store(0, gap_instructions=15)], [store(1, critical_path_cycles=60)], code_bytes=2 * LINE)
        == (116 + 100) * NS
    )


def test_each_sm_and_each_kernel_misses_its_own_lines():
    two = cold(sm__count=2)
    assert ends(two, Launch([grid([[store(0)]], [[store(1)]])], code_bytes=LINE)) == [(51 + 100) * NS]
    launch = Launch([grid([[store(0)]])], code_bytes=LINE)
    again = Launch([grid([[store(1)]])], code_bytes=LINE, start_ps=1000 * NS)
    assert ends(cold(), launch, again) == [151 * NS, 1151 * NS]


def test_instructions_beyond_the_capacity_hit():
    """1,024 lines miss one after the other, as no line is prefetched."""
    total = 1024 * 8
    assert (
        end(cold(), [store(0, gap_instructions=total + 99)], code_bytes=4 << 20) == (1024 * 50 + total + 100 + 100) * NS
    )
