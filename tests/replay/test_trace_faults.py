"""Traces that are truncated or impossible: complete parts run, and other traces give one line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import buddysim
import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.replay.engine.event_loop import ReplayEngine
from tests.replay.events import BASE, load_block, provenance, write_kernels
from tests.trace.builders import line, records, streaming, write_small

TRACES = Path(__file__).parents[2] / "traces"
LOAD = {"kind": bt.OP_LOAD, "use_distance": 1}
BARRIER = {"kind": bt.OP_BARRIER}


def refused(capsys, *arguments):
    """Return the only line that a failing run writes."""
    assert main(["run", *map(str, arguments)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("buddysim: error: ")
    assert shown.err.count("\n") == 1
    return shown.err


class Broken(Exception):
    """Causes that interrupt a capture."""


def broken_off(path, n_blocks):
    """Write a capture of two kernels that is interrupted in the second."""

    def capture():
        with bt.TraceWriter(path, provenance(), keep_part=True) as writer:
            writer.add_allocation("data", BASE, 1 << 26)
            writer.begin_kernel("first", (1, 1, 1), (32, 1, 1))
            writer.add_blocks(*records([load_block([BASE])]))
            writer.end_kernel()
            writer.begin_kernel("second", (n_blocks, 1, 1), (128, 1, 1))
            writer.add_blocks(*streaming(n_blocks))
            raise Broken

    with pytest.raises(Broken):
        capture()
    path.with_name(f"{path.name}.incomplete").rename(path)  # a cut file, by whatever name
    return path


def test_of_an_interrupted_capture_every_complete_chunk_runs(tmp_path, capsys):
    path = broken_off(tmp_path / "t.bin", 2000)
    with bt.open_trace(path) as trace:
        second = trace.kernels[1]
        assert trace.interrupted
        assert not second.complete
        assert 0 < second.n_blocks < 2000
        for scheme in ("ideal", "buddy", "unified-memory"):
            result = buddysim.simulate(trace, scheme=scheme, partial=True)
            assert [kernel["index"] for kernel in result.per_kernel] == [0, 1]
            assert result.counters["memory_instructions"] == 1 + second.n_blocks * 48
            assert result.provenance["partial"] is True
            assert result.provenance["partial_contents"] == (
                f"2 kernel launches, the last with {second.n_blocks:,} of its 2,000 thread blocks; "
                f"everything from byte {trace.file.interrupted_at:,} on is missing"
            )
    assert main(["run", str(path), "--scheme", "ideal", "--partial"]) == 0
    first_lines = capsys.readouterr().out.split("\n")[:12]
    assert any(line.startswith("PARTIAL TRACE: 2 kernel launches, the last with") for line in first_lines)


def test_partial_trace_is_refused_without_the_option(tmp_path, capsys):
    """A partial trace is refused, as its ratio, footprint and time are those of its beginning."""
    whole = (TRACES / "fdtd2048.bin").read_bytes()
    path = tmp_path / "cut.bin"
    path.write_bytes(whole[: len(whole) * 18 // 100])
    problem = "partial trace: it has .* is missing: expected a complete file, or --partial"
    for words in (
        ["run", "--scheme", "buddy"],
        ["run", "--scheme", "buddy", "--json", "-"],
        ["profile"],
        ["analyse", "--only", "ratio"],
        ["sweep", "--scheme", "buddy", "--workers", "1", "--store", str(tmp_path / "store")],
    ):
        assert main([words[0], str(path), *words[1:]]) == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert re.search(problem, output.err.replace("\n", " ")), output.err
    with pytest.raises(BuddysimError, match=problem):
        buddysim.simulate(path, scheme="ideal")
    with pytest.raises(BuddysimError, match=problem):
        buddysim.profile(path)
    with pytest.raises(BuddysimError, match=problem):
        buddysim.simulate(TRACES / "fdtd2048.bin", profile_from=path)


def test_result_of_a_partial_trace_says_so(tmp_path, capsys):
    path = broken_off(tmp_path / "t.bin", 2000)
    assert main(["run", str(path), "--partial", "--scheme", "ideal", "--json", "-"]) == 0
    provenance = json.loads(capsys.readouterr().out)["ideal"]["provenance"]
    assert provenance["partial"] is True
    assert "everything from byte" in provenance["partial_contents"]
    assert main(["profile", str(path), "--partial"]) == 0
    assert capsys.readouterr().out.startswith("PARTIAL TRACE: ")
    store = str(tmp_path / "store")
    words = ["sweep", str(path), "--scheme", "ideal", "--partial", "true", "--workers", "1", "--store", store]
    assert main(words) == 0
    whole = buddysim.simulate(write_small(tmp_path / "whole.bin", 64), scheme="ideal").provenance
    assert (whole["partial"], whole["partial_contents"]) == (False, None)


def test_a_file_cut_anywhere_runs_what_it_holds(tmp_path):
    data = write_small(tmp_path / "whole.bin", 64).read_bytes()
    whole = buddysim.simulate(tmp_path / "whole.bin", scheme="ideal")
    assert whole.provenance["partial"] is False
    done = set()
    for end in [*range(128, len(data), 211), len(data) - 1]:
        (tmp_path / "cut.bin").write_bytes(data[:end])
        result = buddysim.simulate(tmp_path / "cut.bin", scheme="ideal", partial=True)
        assert result.provenance["partial_contents"].endswith(" on is missing")
        done.add(result.counters["memory_instructions"])
    assert min(done) == 0
    assert max(done) == whole.counters["memory_instructions"]
    assert len(done) >= 3


def write_block(path, warps, threads=64, address=BASE, **launch):
    """Write a trace of one kernel of one thread block."""
    with bt.TraceWriter(path, provenance()) as writer:
        writer.add_allocation("data", BASE, 1 << 20)
        writer.begin_kernel("kernel", (1, 1, 1), (threads, 1, 1), **launch)
        writer.add_blocks(*records([(0, warps)]))
        writer.end_kernel()
    return path


def test_a_barrier_waits_for_no_warp_that_has_ended(tmp_path):
    """A trace can't make a barrier wait for ever."""
    load = (LOAD, [line(BASE, 1)])
    for warps in (
        [({"warp": 0}, [load, (BARRIER, [])]), ({"warp": 1}, [(BARRIER, []), load])],
        [({"warp": 0}, [(BARRIER, []), load]), ({"warp": 1}, [load])],
        [({"warp": 0}, [(BARRIER, []), (BARRIER, [])]), ({"warp": 1}, [(BARRIER, [])])],
        [({"warp": 1}, [(BARRIER, [])])],
    ):
        result = buddysim.simulate(write_block(tmp_path / "t.bin", warps), scheme="ideal")
        assert result.counters["memory_instructions"] == sum(op is load for _, ops in warps for op in ops)


def test_warps_that_never_go_on_are_one_line(tmp_path, capsys, monkeypatch):
    """If an engine's fault leaves warps waiting for ever, the run ends with a message."""

    class Stuck(ReplayEngine):
        def run(self, operations):
            return "idle", -1

    monkeypatch.setattr(sys.modules["buddysim.replay.driver"], "ReplayEngine", Stuck)
    path = write_block(tmp_path / "t.bin", [({"warp": 0}, [(BARRIER, [])])])
    assert "warps wait at a barrier" in refused(capsys, path)


def test_an_address_outside_every_allocation(tmp_path, capsys):
    path = write_block(tmp_path / "t.bin", [({"warp": 0}, [(LOAD, [line(BASE + (1 << 20), 1)])])])
    message = refused(capsys, path)
    for text in ("t.bin", "chunk 0 of kernel 0 (kernel)", "offset", hex(BASE + (1 << 20)), "inside a live allocation"):
        assert text in message


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ({"threads": 1024, "registers": 255}, "needs 262144 registers: an SM of p100-nvlink2 has 65536"),
        ({"shared_memory_bytes": 1 << 20}, "needs 1048576 bytes of shared memory: an SM of p100-nvlink2 has 65536"),
    ],
)
def test_a_thread_block_that_no_sm_holds(tmp_path, capsys, launch, message):
    path = write_block(tmp_path / "t.bin", [({"warp": 0}, [(LOAD, [line(BASE, 1)])])], **launch)
    assert f"kernel 0 (kernel): a thread block {message}" in refused(capsys, path)


def test_more_threads_than_the_machine_has_on_an_sm(tmp_path, capsys):
    path = write_block(tmp_path / "t.bin", [({"warp": 0}, [(LOAD, [line(BASE, 1)])])], 1024)
    message = refused(capsys, path, "--set", "sm.warps=16", "sm.threads=512")
    assert "needs 1024 threads" in message or "needs 32 warps" in message


def test_targets_that_do_not_fit(tmp_path, capsys):
    path = write_kernels(tmp_path / "t.bin", [(0, [0])], size=1 << 26)
    arguments = ("--set", "dram.capacity=4MiB", "--size-distribution", "isca20-hpc")
    message = refused(capsys, path, *arguments, "--scheme", "buddy")
    numbers = [int(word) for word in message.replace(":", " ").split() if word.isdigit()]
    needed, available, over = (number for number in numbers if number > 1000)
    assert available == 4 << 20
    assert over == needed - available


def test_a_missing_file(tmp_path, capsys):
    assert "missing.bin" in refused(capsys, tmp_path / "missing.bin")
    assert str(tmp_path) in refused(capsys, tmp_path)


@pytest.mark.parametrize("scheme", ["ideal", "buddy"])
def test_seconds_between_instructions(tmp_path, capsys, scheme):
    """Millions of refreshes pass in between, and a time beyond the engine's limit is refused."""
    longest = {"gap_instructions": 2**32 - 2, "critical_path_cycles": 2**32 - 1, "flags": bt.FLAG_TIMED, **LOAD}

    def written(path, n_ops):
        with bt.TraceWriter(path, provenance()) as writer:
            writer.add_allocation("data", BASE, 1 << 21)
            writer.begin_kernel("waits", (1, 1, 1), (32, 1, 1))
            ops = [(longest, [line(BASE + 128 * (i % 1000), 1)]) for i in range(n_ops)]
            writer.add_blocks(*records([(0, [({"warp": 0}, ops)])]))
            writer.end_kernel()
        return path

    result = buddysim.simulate(written(tmp_path / "hour.bin", 1000), scheme=scheme)
    assert 3000e12 < result.counters["time_ps"] < 3600e12
    error = refused(capsys, written(tmp_path / "day.bin", 12000), "--scheme", scheme)
    assert "day.bin: kernel 0 ends later than a run on p100-nvlink2 can go: 5.0 hours of simulated time" in error
