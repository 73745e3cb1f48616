"""Targets from another input of the program, matched by names and order; profiles up to a launch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.buddy import Targets, profile, targets_of_other_input
from buddysim.buddy.keys_by_allocation import allocation_keys, ordinal_names
from buddysim.trace import Allocation, Provenance, Trace, TraceWriter, open_trace
from tests.buddy.traces import entries, write_trace

FITS_32, FITS_64, RAW = 3, 4, 7


def sized(path: Path, allocations: list[tuple[str, int, int, int]], host: str = "") -> Trace:
    """Write a trace of allocations (name, base, entries, class of every entry); ``%x`` in a name becomes the base."""
    with TraceWriter(path, Provenance("test")) as writer:
        indices = []
        for name, base, n, _ in allocations:
            full = name % base if "%" in name else name
            indices.append(writer.add_allocation(full, base, n * 128, "host" if name == host else "device"))
        snapshot = writer.add_snapshot(0)
        for index, (_, _, n, number) in zip(indices, allocations, strict=True):
            writer.add_contents(snapshot, index, entries([number] * n))
    return open_trace(path)


def names_of(targets: Targets) -> Mapping[str, str]:
    return targets.to_dict()


def test_names_and_order_decide_not_addresses(tmp_path: Path) -> None:
    small = sized(
        tmp_path / "small", [("a", 1 << 20, 64, FITS_32), ("b", 2 << 20, 64, FITS_64), ("b", 3 << 20, 64, RAW)]
    )
    large = sized(tmp_path / "large", [("b", 1 << 20, 256, RAW), ("b", 5 << 20, 256, RAW), ("a", 2 << 20, 256, RAW)])
    matched = targets_of_other_input(profile(small).targets, large)
    assert names_of(matched) == {"b#1": "2x", "b#2": "1x", "a": "4x"}
    assert matched.allocations == large.allocations
    assert {key: matched.source[key] for key in ("beyond", "unmatched", "unused")} == {
        "beyond": [],
        "unmatched": [],
        "unused": [],
    }
    assert matched.source["trace"] == "small"
    assert matched.source["trace_checksum"] == small.fingerprint


def test_an_address_in_a_name_is_no_part_of_it_but_a_call_site_is(tmp_path: Path) -> None:
    sites = ("lib.so+0x1000", "lib.so+0x2000")
    here = [("copied 0x%x", 1 << 20, 64, FITS_32), ("copied 0x%x", 2 << 20, 64, RAW)]
    here += [
        (site, (4 + i) << 20, 64, number) for i, (site, number) in enumerate(zip(sites, (FITS_64, RAW), strict=True))
    ]
    profiled = [("copied 0x%x", 7 << 20, 64, RAW), ("copied 0x%x", 8 << 20, 64, RAW), (sites[1], 1 << 20, 64, RAW)]
    profiled.append((sites[0], 2 << 20, 64, RAW))
    matched = targets_of_other_input(profile(sized(tmp_path / "a", here)).targets, sized(tmp_path / "b", profiled))
    assert names_of(matched) == {"copied#1": "4x", "copied#2": "1x", sites[1]: "1x", sites[0]: "2x"}


def test_only_an_allocations_own_address_is_left_out() -> None:
    some = [
        Allocation(0, "x 0xABC0", 0xABC0, 128),
        Allocation(1, "x0xabc0", 0xABC0, 128),
        Allocation(2, "x 0x10", 32, 128),
    ]
    assert [name[0] for name in ordinal_names(some).values()] == ["x", "x0xabc0", "x 0x10"]


def test_names_of_many_allocations_take_little_time() -> None:
    some = [Allocation(i, "buffer", 128 * i, 128) for i in range(20_000)]
    began = time.process_time()
    assert ordinal_names(some)[19_999] == ("buffer", 19_999)
    assert time.process_time() - began < 1  # 0.05 s, and 6 s where each has a pattern of its own


def test_additional_allocations_of_a_name_get_its_smallest_ratio(tmp_path: Path) -> None:
    small = sized(tmp_path / "small", [("t", 1 << 20, 64, FITS_32), ("t", 2 << 20, 64, FITS_64)])
    large = sized(tmp_path / "large", [("t", i << 20, 64, RAW) for i in range(1, 5)])
    matched = targets_of_other_input(profile(small).targets, large)
    assert names_of(matched) == {"t#1": "4x", "t#2": "2x", "t#3": "2x", "t#4": "2x"}
    assert matched.source["beyond"] == ["t#3", "t#4"]


def test_allocation_without_match_is_uncompressed_and_named(tmp_path: Path) -> None:
    small = sized(
        tmp_path / "small", [("a", 1 << 20, 64, FITS_32), ("gone", 2 << 20, 64, RAW), ("h", 3 << 20, 64, RAW)], "h"
    )
    large = sized(
        tmp_path / "large", [("a", 1 << 20, 64, RAW), ("new", 2 << 20, 64, FITS_32), ("h", 3 << 20, 64, FITS_32)]
    )
    matched = targets_of_other_input(profile(small).targets, large)
    assert names_of(matched) == {"a": "4x", "new": "1x", "h": "1x"}
    assert matched.source["unmatched"] == ["new", "h"]
    assert matched.source["unused"] == ["gone"]


def test_another_program_is_refused(tmp_path: Path) -> None:
    small = sized(tmp_path / "small", [("a", 1 << 20, 64, FITS_32)])
    large = sized(tmp_path / "large", [("b", 1 << 20, 64, RAW)])
    with pytest.raises(
        BuddysimError, match=r"large: no device allocation has a name of those in small: here 'b'; there 'a'"
    ):
        targets_of_other_input(profile(small).targets, large)


def test_a_targets_file_fits_another_input_too(tmp_path: Path) -> None:
    small = sized(tmp_path / "small", [("copied 0x%x", 1 << 20, 64, FITS_32), ("copied 0x%x", 2 << 20, 64, RAW)])
    large = sized(tmp_path / "large", [("copied 0x%x", 5 << 20, 64, RAW), ("copied 0x%x", 6 << 20, 64, RAW)])
    profile(small).targets.save(tmp_path / "t.toml")
    assert f'"copied#1" = "4x"  # "copied {1 << 20:#x}"' in (tmp_path / "t.toml").read_text()
    loaded = Targets.load(tmp_path / "t.toml", large)
    assert loaded == targets_of_other_input(profile(small).targets, large)
    assert loaded.source["kind"] == "file"
    assert len(loaded.source["checksum"]) == 64


def test_the_whole_name_is_no_key_but_the_error_gives_the_key(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[targets]\n"copied 0x2000" = "2x"\n')
    some = [Allocation(i, f"copied {base:#x}", base, 256) for i, base in enumerate((0x1000, 0x2000))]
    assert list(allocation_keys(some).values()) == ["copied#1", "copied#2"]
    with pytest.raises(BuddysimError, match=r"no such allocation \(nearest: 'copied#2'\)"):
        Targets.load(tmp_path / "t.toml", some)


def grown(path: Path) -> Trace:
    """Entries compress after launch 0 and not after launch 5; `late` is only in the second snapshot."""
    early, later = {"a": [FITS_32] * 64}, {"a": [RAW] * 64, "late": [FITS_32] * 64}
    return write_trace(path, {"a": 64, "late": 64}, [(0, early), (5, later)])


def test_snapshots_after_a_launch_are_left_out(tmp_path: Path) -> None:
    trace = grown(tmp_path / "t")
    assert names_of(profile(trace).targets) == {"a": "1x", "late": "4x"}
    early = profile(trace, profile_until_launch=4)
    assert names_of(early.targets) == {"a": "4x", "late": "1x"}
    assert early.targets.source["snapshot_points"] == [0]
    assert early.targets.source["options"]["profile_until_launch"] == 4
    assert [row["sizes_unseen"] for row in early.to_dict()["allocations"]] == [False, True]
    assert [row["sizes_synthetic"] for row in early.to_dict()["allocations"]] == [False, False]
    assert early.ratio == pytest.approx(128 / (64 * 0.25 + 64))
    assert names_of(profile(trace, profile_until_launch=5).targets) == names_of(profile(trace).targets)
    assert profile(trace).targets.source["snapshot_points"] == [0, 5]


def test_a_launch_before_every_snapshot_is_refused(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t", {"a": 64}, [(3, {"a": [FITS_32] * 64})])
    with pytest.raises(
        BuddysimError, match=r"profile_until_launch 2: no snapshot was taken by then: the first one after launch 3"
    ):
        profile(trace, profile_until_launch=2)
    for until in (-1, 1.5, True):
        with pytest.raises(BuddysimError, match=r"profile_until_launch .*: expected a number of launches from 0 on"):
            profile(trace, profile_until_launch=until)  # type: ignore[arg-type]
