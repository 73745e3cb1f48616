"""Snapshots that a run uses, and the entry sizes in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.buddy import Distribution, SizeSource, profile
from buddysim.compress import DEFAULT, algorithms, entry_classes, fvc
from buddysim.compress.compressors import entry_algorithms
from buddysim.trace import Provenance, Trace, TraceWriter, open_trace
from tests.buddy.traces import BASE, PAGE, entries, write_trace


def classes_of(source: SizeSource, snapshot: int | None, allocation: int) -> tuple[list[int], int]:
    out = np.full(source.trace.allocations[allocation].entries, 99, dtype=np.uint8)
    count = source.write_classes(snapshot, allocation, out)
    return out.tolist(), count


def test_snapshots_of_a_run(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 1}, [(point, {"a": [1]}) for point in (2, 5, 5, 9)])
    source = SizeSource(trace)
    first = {launch_index: source.first_snapshot(launch_index) for launch_index in (0, 1, 2, 4, 5, 8, 9, 100)}
    stored = {launch_index: source.after_store(launch_index, 0) for launch_index in (0, 1, 2, 4, 5, 8, 9, 100)}
    copied = {point: source.after_copy(point, 0) for point in (0, 1, 2, 3, 5, 6, 9, 100)}
    assert first == {0: 0, 1: 0, 2: 0, 4: 0, 5: 2, 8: 2, 9: 3, 100: 3}
    assert stored == {0: 0, 1: 0, 2: 1, 4: 1, 5: 3, 8: 3, 9: 3, 100: 3}
    assert copied == {0: 0, 1: 0, 2: 0, 3: 2, 5: 2, 6: 3, 9: 3, 100: 3}


@pytest.mark.parametrize("points", [(), (0,), (3,), (0, 1, 2), (2, 5, 5, 9), (4, 4), (0, 0, 7), (2, 3, 3, 3)])
def test_the_writers_of_a_snapshot_leave_its_sizes(tmp_path: Path, points: tuple[int, ...]) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 1}, [(point, {"a": [1]}) for point in points])
    source = SizeSource(trace)
    launch_indices = range(12)
    for snapshot in range(len(points)) if points else [None]:
        first, last = source.writers_before(snapshot, 0)
        leaving = [launch_index for launch_index in launch_indices if source.after_store(launch_index, 0) == snapshot]
        assert leaving == [launch_index for launch_index in launch_indices if first <= launch_index <= last]


def test_snapshots_that_know_nothing_don_t_count(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 1}, [(0, {}), (3, {"a": [1]}), (6, {})])
    source = SizeSource(trace)
    assert [source.first_snapshot(0), source.first_snapshot(7), source.after_store(0, 0)] == [1, 1, 1]


@pytest.mark.parametrize("as_size_maps", [False, True])
def test_sizes_of_whole_contents_and_of_maps(tmp_path: Path, as_size_maps: bool) -> None:
    known = [0, 1, 2, 3, 4, 5, 6, 7] * 20
    trace = write_trace(
        tmp_path / "t.bin", {"a": 160, "b": 3}, [(0, {"a": known, "b": [7, 0, 1]})], as_size_maps=as_size_maps
    )
    source = SizeSource(trace)
    assert classes_of(source, 0, 0) == (known, 0)
    assert classes_of(source, 0, 1) == ([7, 0, 1], 0)


def test_a_size_map_goes_before_contents(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.bin", Provenance("test")) as writer:
        a = writer.add_allocation("a", BASE, 512)
        s = writer.add_snapshot(0)
        writer.add_contents(s, a, entries([7, 7, 7, 7]))
        writer.add_size_map(s, a, np.array([1, 15, 15, 2], dtype=np.uint8))
    assert classes_of(SizeSource(open_trace(tmp_path / "t.bin")), 0, 0) == ([1, 1, 2, 2], 2)


def test_a_map_of_another_compressor_is_not_used(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.bin", Provenance("test")) as writer:
        a = writer.add_allocation("a", BASE, 512)
        s = writer.add_snapshot(0)
        writer.add_contents(s, a, entries([7, 0, 7, 4]))
        writer.add_size_map(s, a, np.array([1, 1, 1, 1], dtype=np.uint8), compressor="bdi")
    assert classes_of(SizeSource(open_trace(tmp_path / "t.bin")), 0, 0) == ([7, 0, 7, 4], 0)


def sampled_trace(path: Path) -> Trace:
    """Of 200 entries in four pages, the last page has 8 entries; pages 1 and 3 are sampled."""
    with TraceWriter(path, Provenance("test")) as writer:
        a = writer.add_allocation("a", BASE, 3 * PAGE + 8 * 128 - 28)  # the last entry is partial
        s = writer.add_snapshot(0)
        data = entries([1, 4] * 32 + [7, 3] * 4)
        writer.add_contents(s, a, data[: PAGE + 8 * 128 - 28], pages=np.array([1, 3], dtype=np.uint32))
    return open_trace(path)


def test_unsampled_pages_take_the_sizes_of_the_nearest_sampled_one(tmp_path: Path) -> None:
    classes, extrapolated = classes_of(SizeSource(sampled_trace(tmp_path / "t.bin")), 0, 0)
    assert extrapolated == 128
    assert classes[:192] == [1, 4] * 96
    assert classes[192:199] == [7, 3] * 3 + [7]


def test_an_allocation_that_a_snapshot_doesn_t_know_takes_the_next_or_the_last(tmp_path: Path) -> None:
    snapshots: list[tuple[int, dict[str, list[int]]]] = [(0, {"a": [1]}), (1, {"b": [2]}), (2, {"a": [3]})]
    source = SizeSource(write_trace(tmp_path / "t.bin", {"a": 1, "b": 1}, snapshots))
    assert [classes_of(source, s, 0)[0] for s in (0, 1, 2)] == [[1], [3], [3]]
    assert [classes_of(source, s, 1)[0] for s in (0, 1, 2)] == [[2], [2], [2]]
    assert "2 allocations" in source.assumptions["missing_sizes"]


@pytest.mark.parametrize("snapshots", [[], [(0, {"b": [1]})]])
def test_sizes_without_data_values_are_synthetic(
    tmp_path: Path, snapshots: list[tuple[int, dict[str, list[int]]]]
) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 300, "b": 1}, snapshots)
    source = SizeSource(trace, seed=7, size_distribution="isca20-dl")
    expected = np.empty(300, dtype=np.uint8)
    Distribution.load("isca20-dl").write(expected, 7, 0)
    snapshot = source.first_snapshot(0)
    assert snapshot == (0 if snapshots else None)
    assert source.after_store(0, 0) is source.after_copy(0, 0) is source.at_allocation(0, 0) is None
    assert classes_of(source, snapshot, 0) == (expected.tolist(), 0)
    assert "isca20-dl, seed 7" in source.assumptions["synthetic"]
    assert source.assumptions["synthetic"].startswith("no values of a" + (":" if snapshots else ", b:"))


def test_sizes_of_a_size_map_without_known_entries_are_synthetic(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 3}, [(0, {"a": [15, 15, 15]})], as_size_maps=True)
    assert classes_of(SizeSource(trace, size_distribution="uniform:64"), 0, 0) == ([4, 4, 4], 0)


def test_host_memory_without_values_is_whole(tmp_path: Path) -> None:
    source = SizeSource(write_trace(tmp_path / "t.bin", {"a": 2}, host=["a"]), size_distribution="all-zero")
    assert classes_of(source, None, 0) == ([7, 7], 0)
    assert "synthetic" not in source.assumptions


def test_a_wrong_length_is_refused(tmp_path: Path) -> None:
    source = SizeSource(write_trace(tmp_path / "t.bin", {"a": 2}))
    with pytest.raises(BuddysimError, match="3 entries, expected 2"):
        source.write_classes(None, 0, np.zeros(3, dtype=np.uint8))


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True])
def test_a_wrong_seed_is_refused(tmp_path: Path, seed: int) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 2})
    with pytest.raises(BuddysimError, match="expected an integer"):
        SizeSource(trace, seed=seed)


def test_an_unknown_compressor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuddysimError, match="nearest: bpc"):
        SizeSource(write_trace(tmp_path / "t.bin", {"a": 2}), compressor="bcp")


@pytest.mark.parametrize("name", [name for name in entry_algorithms() if name != DEFAULT])
def test_sizes_of_another_compressor_come_from_contents_or_not_at_all(tmp_path: Path, name: str) -> None:
    known = [0, 1, 2, 3, 4, 5, 6, 7]
    trace = write_trace(tmp_path / "contents.bin", {"a": 8}, [(0, {"a": known})])
    expected = entry_classes(entries(known), name).tolist()
    assert expected != known
    assert classes_of(SizeSource(trace, name), 0, 0) == (expected, 0)

    maps_alone = write_trace(tmp_path / "size_maps.bin", {"a": 8}, [(0, {"a": known})], as_size_maps=True)
    with pytest.raises(BuddysimError, match=f"allocation a: the trace has neither sizes by {name} nor contents"):
        classes_of(SizeSource(maps_alone, name), None, 0)
    with pytest.raises(BuddysimError, match=f"{DEFAULT}: expected one of all-zero, incompressible, uniform:BYTES"):
        profile(maps_alone, compressor=name)
    assert classes_of(SizeSource(maps_alone, name, size_distribution="uniform:64"), None, 0) == ([4] * 8, 0)
    assert profile(maps_alone, compressor=name, size_distribution="uniform:64").rows[0].is_synthetic


def test_a_profiled_compressor_has_one_profile_for_the_whole_trace(tmp_path: Path) -> None:
    known = {"a": [1] * 70, "b": [7] * 40, "c": [2]}
    trace = write_trace(tmp_path / "t.bin", {"a": 70, "b": 40, "c": 1}, [(0, {"a": known["a"]}), (4, known)])
    table = fvc.options_from_sample([entries(classes) for classes in (known["a"], *known.values())])
    source = SizeSource(trace, "fvc")
    for number, classes in enumerate(known.values()):
        expected = entry_classes(entries(classes), "fvc", **table).tolist()
        assert classes_of(source, 1, number)[0] == expected
        part = np.zeros(len(classes), dtype=np.uint8)
        source.write_part(1, number, 0, part)
        assert part.tolist() == expected
    alone = entry_classes(entries(known["c"]), "fvc").tolist()
    assert classes_of(source, 1, 2)[0] != alone


@pytest.mark.parametrize("name", sorted(set(algorithms()) - set(entry_algorithms())))
def test_a_compressor_of_tensors_has_no_sizes_of_entries(tmp_path: Path, name: str) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 2})
    for call in (lambda: SizeSource(trace, name), lambda: profile(trace, compressor=name)):
        with pytest.raises(BuddysimError, match=f"{name}: size classes are of entries of 128 B"):
            call()
