"""What a trace means does not hang on names, chunks or a snapshot taken twice; places change times a little."""

from __future__ import annotations

from pathlib import Path

import pytest

import buddysim
from buddysim.machine import Machine
from buddysim.trace import format as fmt
from tests.replay.programs import Program, random_program

SCHEMES = ("ideal", "bandwidth", "buddy", "um", "host")
SEEDS = range(3)
REQUESTS = ("warp_instructions", "memory_instructions", "line_accesses", "load_sectors", "store_sectors")
#: Smaller than the arrays, so that what is measured is not only cold misses.
SMALL = {"l1.size": "6 KiB", "l2.size": "256 KiB", "sm.count": 8, "metadata_cache.size": "4 KiB"}
LARGEST_CHANGE = 0.06
"""Of a time, where addresses change: sets, channels and banks are hashes of them, and these runs last some 10 us."""


def machine() -> Machine:
    return Machine.load("p100-nvlink2").with_overrides(SMALL)


def result(path: Path, scheme: str):
    return buddysim.simulate(path, machine(), scheme)


def outcome(path: Path, scheme: str) -> dict[str, object]:
    """All counters and the kernels' times."""
    found = result(path, scheme)
    kernels = [{key: value for key, value in kernel.items() if key != "name"} for kernel in found.per_kernel]
    return {**found.counters, "kernels": kernels}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_names_chunks_and_a_snapshot_twice_change_nothing(tmp_path, monkeypatch, scheme, seed):
    program = random_program(seed)
    expected = outcome(program.write(tmp_path / "a.bin"), scheme)
    assert outcome(program.renamed().write(tmp_path / "b.bin"), scheme) == expected
    assert (
        outcome(Program(program.arrays, program.kernels, repeated=True).write(tmp_path / "c.bin"), scheme) == expected
    )
    monkeypatch.setattr(fmt, "CHUNK_OPS", 100)
    with buddysim.trace.open_trace(program.write(tmp_path / "d.bin")) as trace:
        assert all(len(kernel.chunks) > 3 for kernel in trace.kernels)
    assert outcome(tmp_path / "d.bin", scheme) == expected


def targets(path: Path) -> dict[str, str]:
    with buddysim.trace.open_trace(path) as trace:
        return buddysim.profile(trace).targets.to_dict()


@pytest.mark.parametrize("change", ["moved", "reversed", "with_untouched"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_other_places_leave_requests_and_targets_and_move_times_a_little(tmp_path, scheme, change, seed):
    program = random_program(seed)
    other = {"moved": lambda: program.moved(1), "reversed": program.reversed, "with_untouched": program.with_untouched}
    paths = program.write(tmp_path / "a.bin"), other[change]().write(tmp_path / "b.bin")
    before, after = (result(path, scheme) for path in paths)
    assert {key: before.counters[key] for key in REQUESTS} == {key: after.counters[key] for key in REQUESTS}
    chosen = targets(paths[1])
    assert {name: ratio for name, ratio in chosen.items() if name != "untouched"} == targets(paths[0])
    if scheme != "um" or change != "with_untouched":  # there the capacity is a share of the footprint
        assert after.counters["time_ps"] == pytest.approx(before.counters["time_ps"], rel=LARGEST_CHANGE)
