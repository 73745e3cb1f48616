"""Analyses of small traces whose numbers follow from the sizes of their entries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import buddysim
from buddysim.analyses import REGISTRY, AnalysisOptions, AnalysisResult, analyse
from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.trace import Trace, TraceWriter, open_trace
from buddysim.trace.format import REPLAY_LABEL
from tests.buddy.traces import PAGE, entries, write_trace
from tests.replay.events import BASE, load_block, provenance
from tests.trace.builders import records

LINKED = 16 + 32 + 16
ZERO, EIGHT, SECTOR, TWO, WHOLE = 0, 1, 3, 4, 7  # size classes of 0, 8, 32, 64 and 128 B


def analysis_of(trace: Trace, name: str, **options: object) -> AnalysisResult:
    return analyse(trace, name, AnalysisOptions(**options))  # type: ignore[arg-type]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Write a trace with two allocations of 4 and 12 entries, and three snapshots."""
    snapshots = [
        (0, {"a": [ZERO] * 4, "b": [SECTOR] * 12}),
        (5, {"a": [ZERO, ZERO, SECTOR, WHOLE], "b": [SECTOR] * 6 + [TWO] * 6}),
        (9, {"a": [SECTOR] * 4, "b": [WHOLE] * 12}),
    ]
    return write_trace(tmp_path / "t.bin", {"a": 4, "b": 12}, snapshots, as_size_maps=True)


def test_ratio_is_entry_bytes_over_class_bytes(trace: Trace) -> None:
    ratio = analysis_of(trace, "ratio")
    assert ratio.column("launches") == [0, 5, 9]
    assert ratio.column("allocated_bytes") == [16 * 128] * 3
    assert ratio.column("stored_bytes") == [12 * 32, 32 + 128 + 6 * 32 + 6 * 64, 4 * 32 + 12 * 128]
    assert ratio.column("ratio") == [2048 / stored for stored in ratio.column("stored_bytes")]


def test_trace_of_zeros_has_no_ratio(tmp_path: Path) -> None:
    zeros = write_trace(tmp_path / "z.bin", {"a": 4}, [(0, {"a": [ZERO] * 4})], as_size_maps=True)
    ratio = analysis_of(zeros, "ratio")
    assert ratio.column("ratio") == [None]
    assert "none: a snapshot has only zeros" in ratio.notes[0]


def test_ratio_of_another_compressor_uses_the_data_values(tmp_path: Path) -> None:
    """zvc takes a mask of 4 B for 128 B of zeros, and 132 B for 128 B of sevens."""
    with TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        index = writer.add_allocation("a", BASE, 256)
        data = np.repeat(np.array([0, 7], "<u4"), 32)
        writer.add_contents(writer.add_snapshot(0), index, data.view(np.uint8))
    with open_trace(tmp_path / "t.bin") as written:
        ratio = analysis_of(written, "ratio", compressors=("bpc", "zvc"))
    assert ratio.column("compressor") == ["bpc", "zvc"]
    assert ratio.column("stored_bytes") == [8, 128]  # zeros take nothing; bpc has 14 bits for 32 equal words


def test_class_fractions_are_means_over_snapshots(trace: Trace) -> None:
    whole, a, b = analysis_of(trace, "classes").records()
    assert whole["allocation"] == "all allocations"
    assert whole["fraction_0B"] == pytest.approx((4 / 16 + 2 / 16 + 0) / 3)
    assert whole["fraction_128B"] == pytest.approx((0 + 1 / 16 + 12 / 16) / 3)
    assert a["fraction_32B"] == pytest.approx((0 + 1 / 4 + 1) / 3)
    assert b["fraction_64B"] == pytest.approx((0 + 1 / 2 + 0) / 3)
    for row in (whole, a, b):
        assert sum(value for name, value in row.items() if name.startswith("fraction")) == pytest.approx(1)  # type: ignore


def test_changes_of_classes_and_of_sectors(trace: Trace) -> None:
    first, second = analysis_of(trace, "changes").records()
    assert (first["launches"], first["entries"]) == (5, 16)
    assert first["class_change_fraction"] == 8 / 16  # two of a, six of b
    assert first["more_sectors_fraction"] == 8 / 16
    assert first["fewer_sectors_fraction"] == 0
    assert second["class_change_fraction"] == (3 + 12) / 16  # of a the third stays
    assert second["more_sectors_fraction"] == (2 + 12) / 16
    assert second["fewer_sectors_fraction"] == 1 / 16


def test_page_classes_have_a_row_per_page(tmp_path: Path) -> None:
    """A page and a half: rows have sizes by entry, and None beyond the allocation's end."""
    classes = [SECTOR] * 64 + [ZERO, WHOLE] * 16
    trace = write_trace(tmp_path / "t.bin", {"a": 96}, [(0, {"a": classes})], as_size_maps=True)
    heat = analysis_of(trace, "page-classes")
    assert [row[:2] for row in heat.rows] == [("a", 0), ("a", 1)]
    assert heat.rows[0][2:] == (32,) * 64
    assert heat.rows[1][2:] == (0, 128) * 16 + (None,) * 32
    assert heat.shown is not None
    assert heat.shown.rows == [("a", 2, 0.5, 0.5)]


def test_thresholds_trade_ratio_for_accesses(tmp_path: Path) -> None:
    """If 15 of 100 entries are uncompressible, the target is 4x from a threshold of 0.15 on, and 1x below it."""
    classes = [WHOLE] * 15 + [SECTOR] * 85
    trace = write_trace(
        tmp_path / "t.bin", {"a": 100, "b": 100}, [(0, {"a": classes, "b": [WHOLE] * 100})], as_size_maps=True
    )
    study = analysis_of(trace, "threshold", thresholds=(0.14, 0.15, 1.0))
    assert study.column("ratio") == [1.0, 200 / 125, 4.0]
    assert study.column("overflow_fraction") == [0, 15 / 200, 115 / 200]


def replayable(path: Path) -> Trace:
    """Write a kernel that loads the last sector of 64 entries: 16 take four sectors, 48 take one."""
    with TraceWriter(path, provenance()) as writer:
        index = writer.add_allocation("a", BASE, 64 * 128)
        writer.begin_kernel("load", (1, 1, 1), (32, 1, 1))
        writer.add_blocks(*records([load_block((BASE + 128 * entry for entry in range(64)), sectors=8)]))
        writer.end_kernel()
        classes = np.array([WHOLE] * 16 + [SECTOR] * 48, np.uint8)
        writer.add_size_map(writer.add_snapshot(0), index, classes)
    return open_trace(path)


def test_targets_by_policy_with_replayed_accesses(tmp_path: Path) -> None:
    """The mean ratio is 2.29: naive chooses 2x, the other policies 4x; 16 entries overflow either target."""
    with replayable(tmp_path / "t.bin") as trace:
        targets = analysis_of(trace, "targets")
    assert targets.column("policy") == ["naive", "per-allocation", "final"]
    assert targets.column("ratio") == [2.0, 4.0, 4.0]
    assert targets.column("overflow_fraction") == [0.25] * 3
    assert targets.column("buddy_accesses") == [16] * 3


def test_traffic_by_kernel(tmp_path: Path) -> None:
    """A sector of each of 16 overflowing entries crosses the link, with a header and behind a request."""
    with replayable(tmp_path / "t.bin") as trace:
        (row,) = analysis_of(trace, "accesses").records()
    assert (row["launch"], row["name"]) == (0, "load")
    assert row["link_bytes"] == 16 * LINKED
    assert row["link_fraction"] == pytest.approx(16 * LINKED / (16 * LINKED + row["device_bytes"]))  # type: ignore[operator]


def test_a_larger_metadata_cache_hits_more(tmp_path: Path) -> None:
    """A small cache holds a quarter of the pages; a large one hits in the second of two passes."""
    pages = 4096
    with TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        index = writer.add_allocation("a", BASE, pages * 8192)
        for entry in range(2):
            writer.begin_kernel("load", (1, 1, 1), (32, 1, 1))
            writer.add_blocks(*records([load_block([BASE + 8192 * page + 128 * entry for page in range(pages)])]))
            writer.end_kernel()
        writer.add_size_map(writer.add_snapshot(0), index, np.full(pages * 64, SECTOR, np.uint8))
    with open_trace(tmp_path / "t.bin") as trace:
        metadata = analysis_of(trace, "metadata", metadata_sizes=(1024, 8192), metadata_lines=(32,))
    assert metadata.column("total_bytes") == [32 * 1024, 32 * 8192]
    assert metadata.column("accesses") == [2 * pages] * 2
    small, large = metadata.column("hit_fraction")
    assert small < 0.1
    assert large > 0.4


@pytest.mark.parametrize("name", REGISTRY.names())
def test_trace_without_data_values_is_refused(name: str, tmp_path: Path) -> None:
    empty = write_trace(tmp_path / "t.bin", {"a": 4})
    if name == "metadata":
        return  # it counts accesses, and says what its sizes are
    with pytest.raises(BuddysimError, match=r"no data values: expected a trace with snapshots"):
        analysis_of(empty, name)


def test_wrong_options_are_named(trace: Trace) -> None:
    with pytest.raises(BuddysimError, match=r"analysis 'ratios': unknown.*nearest: ratio"):
        analyse(trace, "ratios")
    with pytest.raises(BuddysimError, match=r"compressor 'bpcc': unknown"):
        AnalysisOptions(compressors=("bpcc",))
    with pytest.raises(BuddysimError, match=r"threshold"):
        AnalysisOptions(threshold=1.5)
    with pytest.raises(
        BuddysimError, match=r"64 B per slice: too small: expected 128 B or more: 4 ways of lines of 32 B"
    ):
        analysis_of(trace, "metadata", metadata_sizes=(64,), metadata_lines=(32,))
    assert buddysim.analyse is analyse


def test_sampled_pages_represent_the_others(tmp_path: Path) -> None:
    """Page 0 of two is sampled and all zeros; all 64 entries of another allocation have 128 B: 64 of 192 are stored."""
    with TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        sampled = writer.add_allocation("sampled", BASE, 2 * PAGE)
        whole = writer.add_allocation("whole", BASE + 2**21, PAGE)
        snapshot = writer.add_snapshot(0)
        writer.add_contents(snapshot, sampled, bytes(PAGE), pages=[0])
        writer.add_contents(snapshot, whole, entries([WHOLE] * 64))
    with open_trace(tmp_path / "t.bin") as trace:
        ratio, classes, heat = (analysis_of(trace, name) for name in ("ratio", "classes", "page-classes"))
    assert ratio.column("ratio") == [192 / 64]
    assert any("sampled" in note for note in ratio.notes)
    assert classes.column("fraction_0B") == pytest.approx([128 / 192, 1, 0])
    assert [row[:2] for row in heat.rows] == [("sampled", 0), ("whole", 0)]


def test_entries_of_unknown_size_are_empty(tmp_path: Path) -> None:
    """Entries of the second half of a row are unknown if pages have half the size."""
    with TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        index = writer.add_allocation("a", BASE, PAGE)
        half = PAGE // 2
        writer.add_contents(writer.add_snapshot(0), index, bytes(half), pages=[0], page_bytes=half)
    with open_trace(tmp_path / "t.bin") as trace:
        (row,) = analysis_of(trace, "page-classes").rows
    assert row[2:] == (0,) * 32 + (None,) * 32


def test_overflow_at_each_snapshot_with_fixed_targets(trace: Trace) -> None:
    """Allocation a gets 4x from its first snapshots and overflows later; b gets the target of its worst snapshot."""
    over = analysis_of(trace, "overflow", threshold=1.0)
    assert over.column("entries") == [16, 16, 16]
    assert over.column("overflow_fraction") == [0.0, 7 / 16, 12 / 16]  # 4x everywhere: one sector is kept
    assert over.column("launches") == [0, 5, 9]
    assert analysis_of(trace, "overflow", threshold=0.0).column("overflow_fraction") == [0.0, 0.0, 0.0]


def test_per_entry_sector_ratio_is_the_best_achievable(trace: Trace) -> None:
    row = analysis_of(trace, "threshold", thresholds=(0.3,)).records()[0]
    a, b = (0 + (0 + 0 + 1 + 4) + 4) / 3, (12 + (6 + 12) + 48) / 3  # sectors, mean over the snapshots
    assert row["per_entry_sector_ratio"] == pytest.approx(16 * 4 / (a + b))


def test_targets_of_another_input(tmp_path: Path) -> None:
    """Targets are chosen on an input whose entries fit one sector; the other input's entries need four."""
    small = write_trace(tmp_path / "small.bin", {"a": 4}, [(0, {"a": [SECTOR] * 4})], as_size_maps=True)
    large = write_trace(tmp_path / "large.bin", {"a": 8}, [(0, {"a": [WHOLE] * 8})], as_size_maps=True)
    (row,) = analysis_of(large, "threshold", thresholds=(0.3,), profile_from=str(small.path)).records()
    assert (row["ratio"], row["overflow_fraction"]) == (4.0, 1.0)
    (own,) = analysis_of(large, "threshold", thresholds=(0.3,)).records()
    assert (own["ratio"], own["overflow_fraction"]) == (1.0, 0.0)
    assert analysis_of(large, "overflow", profile_from=str(small.path)).column("overflow_fraction") == [1.0]


def test_the_smaller_of_two_compressors_counts(tmp_path: Path) -> None:
    """bdi alone compresses words 0, 1, 2, ..; fpc compresses small signed bytes among zeros."""
    rng = np.random.default_rng(3)
    data = np.concatenate([np.arange(32) + 2**30, np.where(rng.random(32) < 0.3, 5, 0), rng.integers(0, 2**31, 32)])
    with TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        index = writer.add_allocation("a", BASE, 384)
        writer.add_contents(writer.add_snapshot(0), index, data.astype("<u4").view(np.uint8))
    with open_trace(tmp_path / "t.bin") as written:
        stored = analysis_of(written, "ratio", compressors=("bdi", "fpc", "bdi+fpc")).column("stored_bytes")
        single = [
            analysis_of(written, "classes", compressors=(name,)).records()[0] for name in ("bdi", "fpc", "bdi+fpc")
        ]
    assert stored[2] < min(stored[:2])
    assert single[2]["fraction_128B"] == pytest.approx(1 / 3)
    with pytest.raises(BuddysimError, match="bdj"):
        AnalysisOptions(compressors=("bdi+bdj",))


def test_changes_while_launches_run(tmp_path: Path) -> None:
    """Two of 8 entries grow and one shrinks; entries without a new size do not change."""
    names = {"a": 8, "b": 8}
    with TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        index = {
            name: writer.add_allocation(name, BASE + (at << 24), n * 128) for at, (name, n) in enumerate(names.items())
        }
        for point, label, known in (
            (0, "over the run", {"a": [TWO] * 6 + [WHOLE] * 2, "b": [WHOLE] * 8}),
            (3, f"{REPLAY_LABEL} before", {"a": [TWO] * 6 + [WHOLE] * 2, "b": [WHOLE] * 8}),
            (4, f"{REPLAY_LABEL} after k", {"a": [WHOLE] * 2 + [TWO] * 4 + [SECTOR, WHOLE]}),
        ):
            snapshot = writer.add_snapshot(point, label)
            for name, classes in known.items():
                writer.add_size_map(snapshot, index[name], np.array(classes, np.uint8))
    with open_trace(tmp_path / "t.bin") as written:
        before, after = analysis_of(written, "launches").records()
    assert (before["launch"], after["launch"]) == (3, 4)
    assert (before["ratio"], after["ratio"]) == (16 * 128 / (6 * 64 + 10 * 128), 16 * 128 / (4 * 64 + 32 + 11 * 128))
    assert [before[key] for key in ("class_change_fraction", "more_sectors_fraction", "fewer_sectors_fraction")] == [
        0,
        0,
        0,
    ]
    assert after["class_change_fraction"] == 3 / 16
    assert (after["more_sectors_fraction"], after["fewer_sectors_fraction"]) == (2 / 16, 1 / 16)
    # a has 2x: a quarter of it overflows; naive has 1x for all, as free placement has 1.23.
    assert (before["overflow_fraction_final"], after["overflow_fraction_final"]) == (2 / 16, 3 / 16)
    assert (before["overflow_fraction_naive"], after["overflow_fraction_naive"]) == (0, 0)


def test_launches_need_sizes_while_they_run(trace: Trace) -> None:
    with pytest.raises(BuddysimError, match="no sizes while its launches run: expected for example a trace of"):
        analysis_of(trace, "launches")


def test_targets_chosen_anew_move_what_they_change(tmp_path: Path) -> None:
    """64 entries of 32, then 64, then 128 B: 4x, 2x, 1x; entries are read from both memories and written again."""
    sizes = ((0, SECTOR), (5, TWO), (9, WHOLE))
    snapshots = [(launches, {"a": [size] * 64}) for launches, size in sizes]
    trace = write_trace(tmp_path / "t.bin", {"a": 64}, snapshots, as_size_maps=True)
    machine = Machine.load("p100-nvlink2").with_overrides({"link.bandwidth": "1 MB/s", "link.protocol": "packets"})
    result = analysis_of(trace, "updated-targets", machine=machine)
    assert result.column("launches") == [0, 5, 9]
    assert result.column("changed_allocations") == [0, 1, 1]
    assert result.column("ratio") == [1, 4, 2]
    assert result.column("overflow_fraction") == [0, 1, 1]
    sectors = 64 * 32
    assert result.column("device_bytes") == [0, (1 + 2) * sectors, (2 + 4) * sectors]
    assert result.column("link_read_bytes") == [0, sectors, 2 * sectors]
    assert result.column("link_write_bytes") == [0, 0, 0]
    assert result.column("move_ms") == pytest.approx([0, sectors / 1e3, 2 * sectors / 1e3])


def test_smaller_targets_again_write_over_the_link(tmp_path: Path) -> None:
    """64 entries of 128 B, then 16 of them: 1x, then 4x, with three sectors of those 16 in buddy memory."""
    snapshots = [(0, {"a": [WHOLE] * 64}), (5, {"a": [WHOLE] * 16 + [SECTOR] * 48})]
    trace = write_trace(tmp_path / "t.bin", {"a": 64}, snapshots, as_size_maps=True)
    _, row = analysis_of(trace, "updated-targets").records()
    assert (row["ratio"], row["overflow_fraction"]) == (1, 0)
    assert row["device_bytes"] == (16 * 4 + 48 + 64) * 32
    assert (row["link_read_bytes"], row["link_write_bytes"]) == (0, 16 * 3 * 32)


def test_targets_change_between_snapshots_alone(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.bin", {"a": 4}, [(0, {"a": [SECTOR] * 4})], as_size_maps=True)
    with pytest.raises(BuddysimError, match="one snapshot: expected two or more"):
        analysis_of(trace, "updated-targets")


def test_pages_have_targets_of_their_own(tmp_path: Path) -> None:
    """A page of 32 B entries and one of 128 B: 1x by allocation, 4x and 1x by page, unless the first page changes."""
    both = [SECTOR] * 64 + [WHOLE] * 64
    for second, ratio in ((both, 128 / 80), ([WHOLE] * 20 + both[20:], 1.0), ([WHOLE] * 19 + both[19:], 128 / 80)):
        snapshots = [(0, {"a": both}), (5, {"a": second})]
        trace = write_trace(tmp_path / "t.bin", {"a": 128}, snapshots, as_size_maps=True)
        result = analysis_of(trace, "page-targets")
        (row,) = result.records()
        assert (row["pages"], row["target"], row["overflow_fraction"]) == (2, "1x", 0)
        assert row["page_ratio"] == pytest.approx(ratio)
        assert f"{ratio:.3f}x by page" in result.notes[1]
        assert "8 KB: 6 B" in result.notes[2]
    trace = write_trace(tmp_path / "t.bin", {"a": 64}, [(0, {"a": [TWO] * 16 + [SECTOR] * 48})], as_size_maps=True)
    (row,) = analysis_of(trace, "page-targets").records()
    assert (row["page_ratio"], row["page_overflow_fraction"]) == (4, 0.25)
