"""Schemes relative to the baseline: slowdowns and ranges, the baseline's settings, the source of targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.replay.result import ReplayResult
from buddysim.replay.scheme_results import slowdown
from buddysim.replay.sensitivity import prediction_range
from buddysim.synthetic import make_trace
from buddysim.trace import FLAG_TIMED, OP_STORE
from tests.replay.events import load_block, provenance
from tests.trace.builders import line, records

LINK = "link.bandwidth"
BASE = 1 << 33


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("comparison") / "stream.bin"
    make_trace("stream", path, {"footprint": "256 KiB", "op": "copy", "sizes": "32 B:3, 128 B:1"})
    return path


def result(time_ps: int, changed: list[int]) -> ReplayResult:
    sensitivity = {"time_ps": changed, "half_compute_gaps_time_ps": 1, "double_compute_gaps_time_ps": 1000}
    return ReplayResult("any", {"time_ps": time_ps}, [], [], {}, {}, sensitivity=sensitivity)


def test_a_sensitivity_range_is_over_equally_changed_runs() -> None:
    low, high = prediction_range(1.0, [1.0, 0.9, 1.25])
    assert low < 0.9
    assert high > 1.25
    assert slowdown(result(100, [110, 90, 100]), result(100, [110, 100, 80])) == {
        "ratio": 1.0,
        "min": low,
        "max": high,
    }
    assert slowdown(result(130, [143]), result(100, [110])) == pytest.approx({"ratio": 1.3, "min": 1.3, "max": 1.3})
    assert slowdown(result(130, []), result(100, [])) == {"ratio": 1.3, "min": None, "max": None}


def test_every_scheme_is_set_against_the_baseline(stream: Path) -> None:
    results = buddysim.simulate_schemes(stream, schemes=("buddy", "pinned-host", "ideal"), sensitivity="latency")
    times = {scheme: one.counters["time_ps"] for scheme, one in results.items()}
    for scheme, one in results.items():
        assert times[scheme] == buddysim.simulate(stream, scheme=scheme).counters["time_ps"]
        assert one.slowdown["ratio"] == times[scheme] / times["ideal"]
        pairs = zip(one.sensitivity["time_ps"], results["ideal"].sensitivity["time_ps"], strict=True)
        ratios = [time / baseline for time, baseline in pairs]
        assert len(ratios) == 8
        assert (one.slowdown["min"], one.slowdown["max"]) == prediction_range(one.slowdown["ratio"], ratios)
        assert one.provenance["baseline"]["scheme"] == "ideal"
        assert one.provenance["baseline"]["settings"] == {}
    assert results["ideal"].slowdown == {"ratio": 1.0, "min": 1.0, "max": 1.0}
    assert results["buddy"].slowdown["min"] < results["buddy"].slowdown["max"]


def test_library_and_sweeps_have_no_ranges_unless_requested(stream: Path) -> None:
    for options in ({}, {"sensitivity": "auto", "schemes": ("buddy",)}, {"sensitivity": "auto", "schemes": ("ideal",)}):
        for one in buddysim.simulate_schemes(stream, **options).values():
            assert one.sensitivity["time_ps"] == []
            assert one.slowdown["min"] is None
    assert buddysim.simulate_schemes(stream, schemes=("buddy",))["buddy"].slowdown["ratio"] is None
    assert buddysim.simulate_schemes(stream, schemes=("buddy",))["buddy"].provenance["baseline"] is None


@pytest.fixture(scope="module")
def on_host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a program that reads an allocation in host memory, so that the link limits the baseline too."""
    path = tmp_path_factory.mktemp("comparison") / "host.bin"
    with buddysim.trace.TraceWriter(path, provenance()) as writer:  # type: ignore[attr-defined]
        writer.add_allocation("pinned", BASE, 1 << 20, "host")
        writer.add_allocation("data", BASE + (1 << 21), 1 << 20)
        writer.begin_kernel("kernel", (64, 1, 1), (32, 1, 1))
        for block in range(64):
            addresses = [BASE + 128 * (16 * block + number) for number in range(16)]
            writer.add_blocks(*records([load_block(addresses, block)]))
        writer.end_kernel()
    return path


def test_the_baseline_is_held_at_one_link(on_host: Path) -> None:
    machine = Machine.load("p100-nvlink2")
    slow, fast = (machine.with_overrides({LINK: f"{rate} GB/s"}) for rate in (1, 150))
    results = buddysim.simulate_schemes(on_host, slow, baseline_set={LINK: "150 GB/s"}, sensitivity="latency")
    assert results["ideal"].counters["time_ps"] == buddysim.simulate(on_host, fast, "ideal").counters["time_ps"]
    assert results["buddy"].counters["time_ps"] == buddysim.simulate(on_host, slow, "buddy").counters["time_ps"]
    assert results["buddy"].slowdown["min"] > 1.2
    assert buddysim.simulate_schemes(on_host, slow)["buddy"].slowdown["ratio"] == pytest.approx(1, abs=0.05)
    for one in results.values():
        about = one.provenance["baseline"]
        assert about == {"scheme": "ideal", "machine_checksum": fast.checksum, "settings": {LINK: "150 GB/s"}}
    assert results["buddy"].provenance["machine_checksum"] == slow.checksum
    assert results["ideal"].provenance["machine_checksum"] == fast.checksum
    changed = buddysim.simulate_schemes(on_host, fast, sensitivity="latency")["ideal"]
    assert results["ideal"].sensitivity["time_ps"] == changed.sensitivity["time_ps"]


def test_settings_for_a_baseline_that_does_not_run_are_refused(stream: Path) -> None:
    with pytest.raises(BuddysimError, match=r"^baseline_set: ideal, the baseline, is not among the schemes: buddy$"):
        buddysim.simulate_schemes(stream, schemes=("buddy",), baseline_set={LINK: "150 GB/s"})
    with pytest.raises(BuddysimError, match=r"^baseline_set: .*link.bandwith.*nearest: link.bandwidth"):
        buddysim.simulate_schemes(stream, baseline_set={"link.bandwith": "150 GB/s"})


def test_an_unknown_option_is_a_mistake_of_the_caller(stream: Path) -> None:
    with pytest.raises(TypeError, match="seeds"):
        buddysim.simulate_schemes(stream, seeds=3)


def snapshots(path: Path, base: int, points: dict[int, int], name: str = "data", size: int = 64) -> Path:
    """Write an allocation whose entries have given sizes in each snapshot; two kernels read it."""
    classes = {32: 3, 64: 4, 128: 7}
    with buddysim.trace.TraceWriter(path, provenance()) as writer:  # type: ignore[attr-defined]
        index = writer.add_allocation(name, base, 128 * size)
        for number in range(2):
            writer.begin_kernel(f"kernel{number}", (1, 1, 1), (32, 1, 1))
            writer.add_blocks(*records([load_block([base, base + 128])]))
            writer.end_kernel()
        for point, needed in points.items():
            writer.add_size_map(writer.add_snapshot(point), index, np.full(size, classes[needed], np.uint8))
    return path


def test_the_trace_itself_is_profiled_and_the_result_says_so(tmp_path: Path) -> None:
    path = snapshots(tmp_path / "t", BASE, {0: 32, 1: 64, 2: 128})
    one = buddysim.simulate(path, kernels=slice(0, 1))
    assert one.provenance["targets"] == {"data": "1x"}
    source = one.provenance["targets_source"]
    assert (source["kind"], source["trace"], source["snapshot_points"]) == ("profile", "t", [0, 1, 2])
    assert source["trace_checksum"] == one.provenance["trace_checksum"]
    assert one.assumptions["targets"] == (
        "profiled on the replayed trace itself: 3 snapshots, 2 of them after the run's start"
    )
    assert buddysim.simulate(path, scheme="ideal").provenance["targets_source"] == {"kind": "none"}
    assert "targets" not in buddysim.simulate(path, scheme="ideal").assumptions


def test_a_profile_up_to_a_launch(tmp_path: Path) -> None:
    path = snapshots(tmp_path / "t", BASE, {0: 32, 1: 64, 2: 128})
    profiled = {until: buddysim.simulate(path, profile_until_launch=until).provenance for until in (0, 1, 2)}
    targets = {until: provenance["targets"]["data"] for until, provenance in profiled.items()}
    assert targets == {0: "4x", 1: "2x", 2: "1x"}
    one = buddysim.simulate(path, profile_until_launch=0)
    assert one.assumptions["targets"] == "profiled on the replayed trace itself: 1 snapshot up to launch 0"
    assert one.provenance["targets_source"]["options"]["profile_until_launch"] == 0


def test_a_profile_of_another_input(tmp_path: Path) -> None:
    small = snapshots(tmp_path / "small", BASE + (1 << 30), {0: 64, 2: 128})
    large = snapshots(tmp_path / "large", BASE, {0: 128}, size=640)
    for profiled in (small, buddysim.open_trace(small)):
        one = buddysim.simulate(large, profile_from=profiled, profile_until_launch=1)
        assert one.provenance["targets"] == {"data": "2x"}
        source = one.provenance["targets_source"]
        assert (source["trace"], source["unmatched"], source["snapshot_points"]) == ("small", [], [0])
        assert source["trace_checksum"] == buddysim.open_trace(small).fingerprint != one.provenance["trace_checksum"]
        assert one.assumptions["targets"] == "profiled on small: 1 snapshot up to launch 1"
    other = snapshots(tmp_path / "other", BASE, {0: 64}, name="else")
    with pytest.raises(
        BuddysimError, match="no device allocation has a name of those in other: here 'data'; there 'else'"
    ):
        buddysim.simulate(large, profile_from=other)


def test_targets_and_a_profile_exclude_each_other(stream: Path) -> None:
    with buddysim.open_trace(stream) as trace:
        targets = buddysim.Targets.uniform(trace, "2x")
        for option in ({"profile_from": stream}, {"profile_until_launch": 3}):
            with pytest.raises(BuddysimError, match=r"^profile_\w+: targets are given, so nothing is profiled"):
                buddysim.simulate(trace, targets=targets, **option)
        assert buddysim.simulate(trace, targets=targets).provenance["targets_source"] == {
            "kind": "uniform",
            "ratio": "2x",
        }


def test_sizes_of_neighbours_are_counted_over_all_snapshots_used(tmp_path: Path) -> None:
    """One page of four is sampled at the start, and all pages later."""
    from tests.buddy.traces import entries

    path = tmp_path / "t"
    with buddysim.trace.TraceWriter(path, provenance()) as writer:  # type: ignore[attr-defined]
        index = writer.add_allocation("data", BASE, 4 * 8192)
        writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1))
        store = ({"kind": OP_STORE, "flags": FLAG_TIMED}, [line(BASE, 15, 15)])
        writer.add_blocks(*records([(0, [({"warp": 0}, [store])])]))
        writer.end_kernel()
        writer.add_contents(writer.add_snapshot(0), index, entries([4] * 64), pages=[1])
        writer.add_contents(writer.add_snapshot(1), index, entries([4] * 256))
    counters = buddysim.simulate(path).counters
    assert counters["sizes.extrapolated_fraction"] == 0.75
    assert counters["sizes.extrapolated_mean_fraction"] == 0.375
    assert buddysim.simulate(path, scheme="ideal").counters["sizes.extrapolated_mean_fraction"] == 0


def test_sizes_of_another_seed_that_do_not_fit_are_named(tmp_path: Path) -> None:
    """24 allocations of 2 MiB with synthetic sizes fit 26 MiB of memory with some seeds only."""
    path = tmp_path / "t"
    with buddysim.trace.TraceWriter(path, provenance()) as writer:  # type: ignore[attr-defined]
        for number in range(24):
            writer.add_allocation(f"data{number}", BASE + (number << 21), 1 << 21)
        writer.begin_kernel("kernel", (1, 1, 1), (32, 1, 1))
        writer.add_blocks(*records([load_block([BASE])]))
        writer.end_kernel()
    machine = Machine.load("p100-nvlink2").with_overrides({"dram.capacity": "26 MiB"})
    fits = {}
    for seed in range(16):
        try:
            buddysim.simulate(path, machine, seed=seed)
            fits[seed] = True
        except BuddysimError:
            fits[seed] = False
    seed = next(seed for seed in range(8) if fits[seed] and not all(fits[seed + n] for n in range(1, 9)))
    with pytest.raises(BuddysimError, match=r"device memory.*\(sizes of seed \d+, a run for the sensitivity range"):
        buddysim.simulate(path, machine, seed=seed, sensitivity="all")
    assert buddysim.simulate(path, machine, seed=seed, sensitivity="latency,compute-gaps").sensitivity["time_ps"]
