"""Instruction fetch (docs/model-rules.md, Warps, 7). A line of 8 instructions takes 50 ns, a store 100 ns."""

from buddysim.machine import Machine
from tests.replay.bare import Launch, run_launches
from tests.replay.mechanisms.hand import NS, grid, machine, store

LINE = 8 * 16


def cold(ahead: int = 0, latency_ns: int = 50, **overrides: object) -> Machine:
    return machine(sm__icache_miss_latency=f"{latency_ns} ns", sm__icache_prefetch_lines=ahead, **overrides)


def ends(chosen, *launches):
    return run_launches(chosen, launches)[2]


def end(chosen, *warps, code_bytes=LINE, tail=None):
    """When a kernel of one thread block ends (ps)."""
    return ends(chosen, Launch([grid(warps, tail=tail)], warps=len(warps), code_bytes=code_bytes))[0]


def test_a_warp_waits_for_the_first_line_of_its_code():
    assert end(cold(), [store(0)]) == (50 + 1 + 100) * NS
    assert end(machine(), [store(0)]) == (1 + 100) * NS


def test_code_of_unknown_size_is_there():
    assert end(cold(), [store(0)], code_bytes=0) == (1 + 100) * NS


def test_lines_come_when_a_warp_gets_to_them():
    """Sixteen instructions, one per ns: the second line is asked for at 50 + 8.

    A chain of 48 spreads 24 instructions: the second line, asked for with the first, is there in time, the third is
    asked for at 41 + 16 and reached at 41 + 32.
    """
    assert end(cold(), [store(0, gap_instructions=15)], code_bytes=2 * LINE) == (16 + 50 + 50 + 100) * NS
    assert end(cold(1), [store(0, gap_instructions=15)], code_bytes=2 * LINE) == (16 + 50 + 100) * NS
    spread = [store(0, gap_instructions=23, critical_path_cycles=48)]
    assert end(cold(1, 41), spread, code_bytes=3 * LINE) == (48 + 41 + (41 - 16) + 100) * NS
    assert end(cold(1, 16), spread, code_bytes=3 * LINE) == (48 + 16 + 100) * NS
    assert end(cold(1, 17), spread, code_bytes=3 * LINE) == (48 + 17 + 1 + 100) * NS


def test_a_ninth_instruction_is_on_the_next_line():
    assert end(cold(), [store(0, gap_instructions=7)], code_bytes=LINE + 16) == (8 + 50 + 100) * NS
    assert end(cold(), [store(0, gap_instructions=8)], code_bytes=LINE + 16) == (9 + 50 + 50 + 100) * NS
    assert end(cold(), [store(0, gap_instructions=8)], code_bytes=LINE + 15) == (9 + 50 + 100) * NS


def test_lines_ahead_are_asked_for_with_a_line_that_is_there_when_it_is_reached_or_comes():
    """One line ahead: the first two are there at 50; the second is reached at 58, so the third comes at 108.

    That is reached at 66, so the fourth is asked for when the third has come, and is there at 158.
    """
    assert end(cold(1), [store(0, gap_instructions=23)], code_bytes=3 * LINE) == (24 + 50 + 42 + 100) * NS
    assert end(cold(1), [store(0, gap_instructions=31)], code_bytes=4 * LINE) == (32 + 50 + 42 + 42 + 100) * NS
    assert end(cold(2), [store(0, gap_instructions=31)], code_bytes=4 * LINE) == (32 + 50 + 34 + 100) * NS
    assert end(cold(3), [store(0, gap_instructions=31)], code_bytes=4 * LINE) == (32 + 50 + 100) * NS


def test_code_that_has_run_once_is_there():
    """Three turns of a loop of eight instructions."""
    assert (
        end(cold(), [store(0, gap_instructions=7), store(1, gap_instructions=7), store(2, gap_instructions=7)])
        == (24 + 50 + 100) * NS
    )


def test_the_end_of_a_warp_has_code_too():
    tail = {"tail_gap_instructions": 8, "tail_critical_path_cycles": 200}
    assert end(cold(), [store(0, gap_instructions=7)], code_bytes=2 * LINE, tail=tail) == (8 + 50 + 50 + 200) * NS


def test_warps_of_an_sm_fetch_a_line_once():
    """The second warp begins at 49 and gets to the line then. Both are ready at 51; the first issues first."""
    first, second = [store(0)], [store(1)]
    assert end(cold(kernel__warp_launch_interval="49 ns"), first, second) == (52 + 100) * NS
    assert end(cold(kernel__warp_launch_interval="60 ns"), first, second) == (61 + 100) * NS


def test_a_warp_that_waits_for_code_takes_no_issue_slots():
    """The second warp issues at 60, while the first one waits for its second line."""
    assert (
        end(cold(), [store(0, gap_instructions=15)], [store(1, critical_path_cycles=60)], code_bytes=2 * LINE)
        == (116 + 100) * NS
    )


def test_each_sm_and_each_kernel_fetches_its_own():
    two = cold(sm__count=2)
    assert ends(two, Launch([grid([[store(0)]], [[store(1)]])], code_bytes=LINE)) == [(51 + 100) * NS]
    launch = Launch([grid([[store(0)]])], code_bytes=LINE)
    again = Launch([grid([[store(1)]])], code_bytes=LINE, start_ps=1000 * NS)
    assert ends(cold(), launch, again) == [151 * NS, 1151 * NS]


def test_code_beyond_128_kib_is_there():
    """1,024 lines take their time, one after the other, as none is fetched ahead."""
    whole = 1024 * 8
    assert (
        end(cold(), [store(0, gap_instructions=whole + 99)], code_bytes=4 << 20) == (1024 * 50 + whole + 100 + 100) * NS
    )
