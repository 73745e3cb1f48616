"""The profiler: the snapshots that it reads, and the rules by which it chooses targets."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.buddy import ALL_TARGETS, Profile, ProfileOptions, SizeSource, profile
from buddysim.compress import SECTORS_OF_CLASS
from buddysim.trace import Provenance, TraceWriter, open_trace
from tests.buddy.traces import BASE, PAGE, entries, write_trace

Snapshots = Sequence[tuple[int, dict[str, list[int]]]]

ZERO, EIGHT, SECTOR, TWO, THREE, WHOLE = 0, 1, 3, 4, 6, 7


def target_ratios(path: Path, snapshots: Snapshots, **options: object) -> dict[str, str]:
    sizes = {name: len(classes) for _, known in snapshots for name, classes in known.items()}
    trace = write_trace(path, sizes, snapshots, as_size_maps=True)
    result = profile(trace, **options)  # type: ignore[arg-type]
    return {row.name: row.target.name for row in result.rows}


def mix(fraction: float, small: int, large: int, n: int = 100) -> list[int]:
    """Return classes of which a fraction is `large`, and the rest `small`."""
    many = round(fraction * n)
    return [large] * many + [small] * (n - many)


@pytest.mark.parametrize(
    ("classes", "ratio"),
    [
        (mix(0.30, SECTOR, TWO), "4x"),
        (mix(0.31, SECTOR, TWO), "2x"),
        (mix(0.31, SECTOR, THREE), "1.33x"),
        (mix(0.31, SECTOR, WHOLE), "1x"),
        (mix(0.30, TWO, WHOLE), "2x"),
        (mix(0.30, THREE, WHOLE), "1.33x"),
        (mix(0.02, ZERO, SECTOR), "4x"),
        (mix(0.01, ZERO, WHOLE), "4x"),  # mostly zero, but alone at 16x it would be over 4x
    ],
)
def test_threshold_per_allocation(tmp_path: Path, classes: list[int], ratio: str) -> None:
    assert target_ratios(tmp_path / "t.bin", [(0, {"a": classes})]) == {"a": ratio}


def test_a_trace_or_the_path_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "t.bin"
    write_trace(path, {"a": 10}, [(0, {"a": [4] * 10})])
    with open_trace(path) as trace:
        assert profile(trace).to_dict() == profile(path).to_dict() == profile(str(path)).to_dict()


def test_the_threshold_is_taken_as_written(tmp_path: Path) -> None:
    """In floating point, 0.07 x 100 is slightly more than 7, and 0.29 x 100 slightly less than 29."""
    for fraction in (0.07, 0.29, 0.57):
        for more, ratio in ((0.0, "4x"), (0.01, "2x")):
            result = target_ratios(
                tmp_path / "t.bin", [(0, {"a": mix(fraction + more, SECTOR, TWO)})], threshold=fraction
            )
            assert result == {"a": ratio}


def test_the_worst_snapshot_decides_or_the_mean(tmp_path: Path) -> None:
    decaying: Snapshots = [(i, {"a": mix(fraction, SECTOR, TWO)}) for i, fraction in enumerate((0.0, 0.1, 0.5))]
    assert target_ratios(tmp_path / "t.bin", decaying) == {"a": "2x"}
    assert target_ratios(tmp_path / "t.bin", decaying, aggregate="mean") == {"a": "4x"}


def test_mostly_zero_allocations_get_16x_while_the_whole_stays_under_4x(tmp_path: Path) -> None:
    zero = mix(0.01, EIGHT, WHOLE)
    known = {"large": zero * 4, "small": zero, "rest": mix(0, WHOLE, WHOLE, 200)}
    assert target_ratios(tmp_path / "t.bin", [(0, known)]) == {"large": "16x", "small": "16x", "rest": "1x"}
    # Without what balances it, the largest one goes back; then the rest is under 4x.
    known = {"large": zero * 4, "small": zero, "rest": mix(0, TWO, TWO)}
    assert target_ratios(tmp_path / "t.bin", [(0, known)]) == {"large": "4x", "small": "16x", "rest": "2x"}


def test_mostly_zero_must_hold_in_every_snapshot(tmp_path: Path) -> None:
    rest = mix(0, WHOLE, WHOLE, 300)
    snapshots: Snapshots = [
        (0, {"a": mix(0, ZERO, ZERO), "rest": rest}),
        (1, {"a": mix(0.02, ZERO, SECTOR), "rest": rest}),
    ]
    assert target_ratios(tmp_path / "t.bin", snapshots)["a"] == "4x"
    assert target_ratios(tmp_path / "t.bin", snapshots, aggregate="mean")["a"] == "4x"
    assert target_ratios(tmp_path / "t.bin", snapshots, zero_fraction=0.98)["a"] == "16x"
    assert target_ratios(tmp_path / "t.bin", snapshots, zero_fraction=0.98, policy="per-allocation")["a"] == "4x"


def test_without_a_state_for_8_bytes_only_zero_entries_fit_16x(tmp_path: Path) -> None:
    known = {"zero": [ZERO] * 10, "eight": [EIGHT] * 10, "rest": [WHOLE] * 40}
    assert target_ratios(tmp_path / "t.bin", [(0, known)]) == {"zero": "16x", "eight": "16x", "rest": "1x"}
    assert target_ratios(tmp_path / "t.bin", [(0, known)], eight_byte_class=False) == {
        "zero": "16x",
        "eight": "4x",
        "rest": "1x",
    }


@pytest.mark.parametrize(
    ("known", "ratio"),
    [
        ({"a": [WHOLE] * 9, "b": [ZERO]}, "1x"),  # 1.11
        ({"a": [WHOLE] * 3, "b": [ZERO]}, "1.33x"),
        ({"a": [WHOLE] * 2, "b": [ZERO] * 2}, "2x"),
        ({"a": [WHOLE] * 1, "b": [ZERO] * 3}, "4x"),
        ({"a": [ZERO] * 4, "b": [ZERO] * 4}, "4x"),
    ],
)
def test_ref_is_one_ratio_for_all(tmp_path: Path, known: dict[str, list[int]], ratio: str) -> None:
    assert set(target_ratios(tmp_path / "t.bin", [(0, known)], policy="naive").values()) == {ratio}


def test_ref_averages_sizes_not_ratios(tmp_path: Path) -> None:
    snapshots: Snapshots = [(0, {"a": [ZERO] * 4}), (1, {"a": [WHOLE] * 4})]  # ratios infinite and 1, sizes 0 and 128
    assert target_ratios(tmp_path / "t.bin", snapshots, policy="naive") == {"a": "2x"}


def test_figures_of_a_profile(tmp_path: Path) -> None:
    snapshots: Snapshots = [
        (0, {"a": [ZERO, EIGHT, 2, SECTOR, TWO, 5, THREE, WHOLE], "b": [ZERO] * 2}),
        (1, {"a": [ZERO] * 8, "b": [WHOLE] * 2}),
    ]
    result = profile(write_trace(tmp_path / "t.bin", {"a": 8, "b": 2}, snapshots, as_size_maps=True), threshold=0.5)
    a, b = result.rows
    assert a.histogram == (9 / 16, 1 / 16, 2 / 16, 1 / 16, 2 / 16, 1 / 16)
    assert [a.target.name, b.target.name] == ["4x", "1x"]
    assert (result.overflow_fraction(a), result.overflow_fraction(a, "worst")) == (Fraction(1, 4), Fraction(1, 2))
    assert result.ratio == 10 * 128 / (8 * 32 + 2 * 128)
    assert result.buddy_access_fraction == 0.2
    assert result.per_entry_ratio == 10 * 128 / (8 * (8 + 16 + 32 + 64 + 80 + 96 + 128) / 16 + 2 * 64)


def test_the_same_from_contents_and_from_maps(tmp_path: Path) -> None:
    snapshots: Snapshots = [(0, {"a": [0, 1, 2, 3, 4, 5, 6, 7] * 9}), (4, {"a": [0, 1, 2, 3] * 18})]
    result = [
        profile(write_trace(tmp_path / f"{as_maps}.bin", {"a": 72}, snapshots, as_size_maps=as_maps)).to_dict()
        for as_maps in (0, 1)
    ]
    assert result[0] == result[1]


def test_snapshots_for_the_replay_take_no_part_where_there_are_others(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.bin", Provenance("test")) as writer:
        a = writer.add_allocation("a", BASE, 4 * 128)
        b = writer.add_allocation("b", BASE + 2**21, 4 * 128)
        for point, label, known in (
            (0, "before the first launch", {a: SECTOR}),
            (3, "replay: after 3 launches", {a: WHOLE, b: WHOLE}),
            (4, "replay: after 4 launches", {a: WHOLE, b: TWO}),
            (9, "after 9 launches", {a: TWO}),
        ):
            s = writer.add_snapshot(point, label)
            for allocation, size in known.items():
                writer.add_size_map(s, allocation, np.full(4, size, dtype=np.uint8))
    trace = open_trace(tmp_path / "t.bin")
    result = profile(trace)
    assert [row.snapshots for row in result.rows] == [(0, 3), (1, 2)]
    assert [row.histogram for row in result.rows] == [(0, 0, 0.5, 0.5, 0, 0), (0, 0, 0, 0.5, 0, 0.5)]
    source = SizeSource(trace)
    assert [source.after_store(launch_index, a) for launch_index in (0, 2, 3, 4)] == [1, 1, 2, 3]


def test_only_sampled_entries_count(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.bin", Provenance("test")) as writer:
        a = writer.add_allocation("a", BASE, 10 * PAGE)
        b = writer.add_allocation("b", BASE + 2**21, 4 * 128)
        s = writer.add_snapshot(0)
        writer.add_contents(s, a, entries([SECTOR] * 64 + [TWO] * 64), pages=np.array([3, 9], dtype=np.uint32))
        writer.add_size_map(s, b, np.array([15, 15, 15, 4], dtype=np.uint8))
    result = profile(open_trace(tmp_path / "t.bin"))
    assert [row.histogram for row in result.rows] == [(0, 0, 0.5, 0.5, 0, 0), (0, 0, 0, 1, 0, 0)]


def test_host_allocations_take_no_part(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 4, "h": 40}, [(0, {"a": [SECTOR] * 4, "h": [WHOLE] * 40})], ["h"])
    result = profile(trace)
    assert [row.name for row in result.rows] == ["a"]
    assert (result.host, result.ratio, result.targets.of(1).name) == (["h"], 4.0, "1x")


def test_allocations_without_values_get_targets_from_the_distribution(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 4, "b": 5000}, [(0, {"a": [SECTOR] * 4})])
    result = profile(trace, size_distribution="isca20-dl", seed=3)
    assert [row.is_synthetic for row in result.rows] == [False, True]
    classes = np.empty(5000, dtype=np.uint8)
    SizeSource(trace, seed=3, size_distribution="isca20-dl").write_classes(0, 1, classes)
    assert result.rows[1].counts.tolist() == [np.bincount(classes, minlength=8).tolist()]
    assert profile(trace, size_distribution="uniform:64").rows[1].target.name == "2x"


@pytest.mark.parametrize(("name", "ratio", "buddy"), [("isca20-hpc", 1.92, 0.0011), ("isca20-dl", 1.49, 0.0392)])
def test_distributions_lead_to_what_the_paper_reports(tmp_path: Path, name: str, ratio: float, buddy: float) -> None:
    """Final targets of many allocations give a ratio and buddy accesses near Fig. 7's geometric means."""
    trace = write_trace(tmp_path / "t.bin", {f"a{i}": 64 * 100 for i in range(2000)})
    result = profile(trace, size_distribution=name)
    assert result.ratio == pytest.approx(ratio, rel=0.1)
    assert result.buddy_access_fraction == pytest.approx(buddy, rel=0.25)


class_lists = st.lists(st.integers(0, 7), min_size=1, max_size=40)


@given(
    st.lists(st.tuples(class_lists, class_lists), min_size=1, max_size=5),
    st.sampled_from([0, 0.1, 0.3, 0.5, 1]),
    st.sampled_from(["worst", "mean"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_rules_hold_whatever_the_sizes(
    tmp_path: Path, seen: list[tuple[list[int], list[int]]], threshold: float, aggregate: str
) -> None:
    seen = [(first, (second * 40)[: len(first)]) for first, second in seen]
    snapshots = [(when, {f"a{i}": both[when] for i, both in enumerate(seen)}) for when in (0, 1)]
    sizes = {f"a{i}": len(both[0]) for i, both in enumerate(seen)}
    with write_trace(tmp_path / "t.bin", sizes, snapshots, as_size_maps=True) as trace:
        result = {policy: profile(trace, threshold, aggregate, policy) for policy in ("per-allocation", "final")}
    for row, both in zip(result["per-allocation"].rows, seen, strict=True):
        fractions = {
            t.name: [sum(SECTORS_OF_CLASS[c] > t.device_sectors for c in classes) / len(classes) for classes in both]
            for t in ALL_TARGETS[:4]
        }
        judge = max if aggregate == "worst" else np.mean
        holding = [name for name, overflow in fractions.items() if judge(overflow) <= threshold + 1e-12]
        assert row.target.name == holding[-1]
    final, plain = result["final"], result["per-allocation"]
    assert final.ratio <= 4
    assert final.ratio >= plain.ratio or any(row.target.name == "16x" for row in final.rows)
    for row, before in zip(final.rows, plain.rows, strict=True):
        assert row.target in (before.target, ALL_TARGETS[3], ALL_TARGETS[4])


@pytest.mark.parametrize(
    ("freed", "targets"),
    [
        ((), {"zeros": "16x", "raw": "1x", "more": "16x"}),
        (("raw",), {"zeros": "4x", "raw": "1x", "more": "4x"}),
        (("raw", "zeros"), {"zeros": "16x", "raw": "1x", "more": "4x"}),
        (("zeros",), {"zeros": "16x", "raw": "1x", "more": "16x"}),
    ],
)
def test_the_ratio_of_what_lives_at_once_is_at_most_4(
    tmp_path: Path, freed: tuple[str, ...], targets: dict[str, str]
) -> None:
    """At 16x, four entries of zeros balance one raw entry; all exist only before the first event."""
    with TraceWriter(tmp_path / "t.bin", Provenance("test")) as writer:
        snapshot = writer.add_snapshot(0)
        index = {}
        for name, n in (("zeros", 16), ("raw", 12), ("more", 32)):
            base = BASE + len(index) * 2**21
            index[name] = writer.add_allocation(name, base, n * 128)
            writer.add_size_map(snapshot, index[name], np.full(n, WHOLE if name == "raw" else ZERO, dtype=np.uint8))
        writer.memset(BASE, 128, 0)
        for name in freed:
            writer.free_allocation(index[name])
    with open_trace(tmp_path / "t.bin") as trace:
        result = profile(trace)
    assert {row.name: row.target.name for row in result.rows} == targets
    assert result.ratio <= 4


def test_profile_takes_every_option_with_its_default() -> None:
    parameters = inspect.signature(profile).parameters.items()
    taken = {name: p.default for name, p in parameters if name not in ("trace", "partial")}
    assert taken == {field.name: field.default for field in fields(ProfileOptions)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.5}, "threshold 1.5: expected a fraction from 0 to 1"),
        ({"threshold": -0.1}, "threshold -0.1: expected"),
        ({"threshold": float("nan")}, "threshold nan: expected"),
        ({"threshold": "0.3"}, "threshold '0.3': expected"),
        ({"zero_fraction": 2}, "zero_fraction 2: expected"),
        ({"policy": "best"}, "policy 'best': expected one of naive, per-allocation, final"),
        ({"aggregate": "median"}, "aggregate 'median': expected one of worst, mean"),
        ({"size_distribution": "gauss"}, "distribution 'gauss': unknown"),
        ({"seed": -1}, "seed -1: expected"),
        ({"compressor": "zip"}, "compressor 'zip': unknown"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 1})
    with pytest.raises(BuddysimError, match=message):
        profile(trace, **options)  # type: ignore[arg-type]


def test_a_trace_without_allocations_has_an_empty_profile(tmp_path: Path) -> None:
    result: Profile = profile(write_trace(tmp_path / "t.bin", {}))
    assert (result.rows, result.ratio, result.buddy_access_fraction) == ([], 1.0, 0.0)
    assert json.loads(json.dumps(result.to_dict()))["allocations"] == []
