"""Machines: accepted and refused machine files, with messages."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.machine.model import keys

PAPER = Machine.load("p100-nvlink2")
KEYS = [key for key, _ in keys()]


def refusal(overrides: dict[str, object]) -> str:
    with pytest.raises(BuddysimError) as refused:
        PAPER.with_overrides(overrides)
    message = str(refused.value)
    assert "\n" not in message
    assert message.startswith("p100-nvlink2: ")
    return message.removeprefix("p100-nvlink2: ")


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def file_refusal(path: Path) -> str:
    with pytest.raises(BuddysimError) as refused:
        Machine.load(path)
    message = str(refused.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_times_and_bandwidths_resolve_their_clocks() -> None:
    assert PAPER.ps(PAPER.l2.load_to_use) == 180_000
    assert PAPER.ps(PAPER.compression.latency) == 12_571
    assert PAPER.bytes_per_s(PAPER.crossbar.reply_bandwidth) == 41_600_000_000
    faster = PAPER.with_overrides({"clock.core": "2.6 GHz"})
    assert faster.ps(faster.l2.load_to_use) == 90_000


def test_machines_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        PAPER.l2.size = 1


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"l2.siez": "1 MiB"}, "l2.siez: unknown key (nearest: l2.size)"),
        ({"dram.write_queue": 16}, "dram.write_queue: unknown key (nearest: dram.write_drain)"),
        (
            {"dram.write_high_watermark": 16, "dram.write_low_watermark": 16},
            "dram.write_low_watermark: 16: expected less than write_high_watermark, 16",
        ),
        ({"L2.Size": "1 MiB"}, "L2.Size: unknown key (nearest: l2.size)"),
        ({"link.bandwith": "1 GB/s"}, "link.bandwith: unknown key (nearest: link.bandwidth)"),
        ({"l2": "1 MiB"}, "l2: a section, not a key: expected one of l2.size, l2.slices"),
        ({"l2.size": "4 GHz"}, "l2.size: '4 GHz' is not a size: 'GHz' is not the unit of a size; expected a number"),
        ({"l2.size": 4194304}, "l2.size: 4194304 is not a size: expected a number and one of B, KiB"),
        ({"l2.size": "6 MB"}, "l2.size: 6 MB is not an integer number of sets of 32 slices x 16 ways x 128 B"),
        ({"l2.size": "1 TiB"}, "l2.size: 1 TiB is out of range: expected 4 KiB to 1 GiB"),
        ({"l2.ways": 0}, "l2.ways: 0 is out of range: expected an integer from 1 to 1024"),
        ({"l2.ways": "7"}, "l2.size: 4 MiB is not an integer number of sets"),
        ({"l2.ways": "many"}, "l2.ways: 'many' is not an integer"),
        ({"l1.ways": 0}, "l1.ways: 0 is out of range"),
        ({"metadata_cache.ways": 0}, "metadata_cache.ways: 0 is out of range"),
        ({"sm.count": 0}, "sm.count: 0 is out of range"),
        ({"sm.count": True}, "sm.count: True is not an integer"),
        ({"sm.count": 10**30}, "sm.count: "),
        ({"sm.threads": 1024}, "sm.threads: 1024 is less than warps x 32: expected at least 2048"),
        ({"sm.policy": "gtoo"}, "sm.policy: 'gtoo' is unknown: expected one of gto, lrr (nearest: gto)"),
        ({"l2.slices": 0}, "l2.slices: 0 is out of range"),
        ({"dram.channels": 0}, "dram.channels: 0 is out of range"),
        ({"dram.banks": 12}, "dram.banks: 12: expected a power of two"),
        ({"l2.slices": 64, "dram.channels": 40}, "l2.slices: 64 and dram.channels, 40: expected a multiple of each"),
        ({"dram.bank_groups": 3}, "dram.banks: 16: expected a multiple of bank_groups, 3"),
        ({"dram.load_to_use": "200 ns"}, "dram.load_to_use: 200 ns does not include l2.load_to_use and an activate"),
        ({"dram.load_to_use": "100 ns"}, "dram.load_to_use: 100 ns is less than l2.load_to_use"),
        ({"l2.load_to_use": "10 ns"}, "l2.load_to_use: 10 ns is less than l1.load_to_use"),
        ({"link.load_to_use": "10 ns"}, "link.load_to_use: 10 ns is less than l2.load_to_use"),
        ({"link.load_to_use": "2 s"}, "link.load_to_use: 2 s is out of range: expected at most 1 s"),
        ({"link.bandwidth": "0 GB/s"}, "link.bandwidth: 0 GB/s is out of range"),
        ({"link.bandwidth": "150 GB"}, "link.bandwidth: '150 GB' is not a bandwidth"),
        ({"dram.timing.tREFI": "100 ns"}, "dram.timing.tREFI: 100 ns is not longer than tRFC"),
        ({"dram.timing.tRFC": "1 ms"}, "dram.timing.tRFC: 1 ms is out of range: expected at most 10 us"),
        ({"clock.core": "1 Hz"}, "clock.core: 1 Hz is out of range: expected 1 MHz to 100 GHz"),
        ({"um.oversubscription": 1}, "um.oversubscription: 1 is out of range"),
        ({"um.oversubscription": "half"}, "um.oversubscription: 'half' is not a number"),
        ({"um.page_size": "48 KiB"}, "um.page_size: 48 KiB: expected a power of two"),
        ({"um.va_block_size": "32 KiB"}, "um.va_block_size: 32 KiB: expected at least page_size, 64 KiB"),
        ({"l1.line": "64 B"}, "l1.line: 64 B is out of range"),
        (
            {"l1.bank_conflicts": "tag_and_data", "l1.lines_per_cycle": 2},
            "l1.lines_per_cycle: 2 with bank_conflicts tag_and_data: expected 1",
        ),
        (
            {"l1.bank_conflicts": "data"},
            "l1.bank_conflicts: 'data' is unknown: expected one of none, sector, tag_and_data",
        ),
        ({"metadata_cache.line": "96 B"}, "metadata_cache.line: 96 B: expected 32 B, 64 B or 128 B"),
        (
            {"metadata_cache.speculative_fetch": "yes"},
            "metadata_cache.speculative_fetch: 'yes' is not a switch: expected true or false",
        ),
        ({"sm.count": 1024, "l1.size": "12 MiB"}, "l1.size: 1024 SMs x 12 MiB is more than 1 GiB"),
        ({"dram.channels": 1024, "dram.banks": 1024}, "dram: channels x pseudo_channels x banks: expected at most"),
        ({"name": ""}, "name: '' is not a text"),
    ],
)
def test_refusals_name_key_value_and_expectation(overrides: dict[str, object], problem: str) -> None:
    assert refusal(overrides).startswith(problem)


def test_all_errors_come_at_once() -> None:
    message = refusal({"l2.ways": 0, "sm.count": "none", "link.bandwidth": "1 parsec"})
    assert "l2.ways: " in message
    assert "sm.count: " in message
    assert "link.bandwidth: " in message


@given(st.sampled_from(KEYS), st.one_of(st.text(max_size=12), st.integers(), st.booleans(), st.floats(), st.none()))
def test_any_value_of_any_key_is_taken_or_refused_in_one_line(key: str, value: object) -> None:
    try:
        PAPER.with_overrides({key: value})
    except BuddysimError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 2000


def test_an_override_keeps_the_rest_and_says_so() -> None:
    changed = PAPER.with_overrides({"l2.size": "6MiB", "sm.count": "80", "metadata_cache.speculative_fetch": "false"})
    assert (changed.l2.size, changed.sm.count, changed.metadata_cache.speculative_fetch) == (6 << 20, 80, False)
    assert changed.l2.ways == PAPER.l2.ways
    assert changed.source("l2.size") == "given for this run (was: 4 MiB)"
    assert changed.source("l2.ways") == PAPER.source("l2.ways")
    assert PAPER.l2.size == 4 << 20


def test_the_checksum_is_of_what_a_run_depends_on() -> None:
    assert PAPER.with_overrides({"l2.size": "4096 KiB", "name": "other", "description": "x"}).checksum == PAPER.checksum
    assert PAPER.with_overrides({"link.bandwidth": "0.15 TB/s"}).checksum == PAPER.checksum
    assert PAPER.with_overrides({"dram.load_to_use": "0.28 us"}).checksum == PAPER.checksum
    for overrides in (
        {"l2.size": "8 MiB"},
        {"dram.load_to_use": "281 ns"},
        {"metadata_cache.speculative_fetch": False},
    ):
        assert PAPER.with_overrides(overrides).checksum != PAPER.checksum


def test_a_machine_survives_pickle_and_its_own_file(tmp_path: Path) -> None:
    changed = PAPER.with_overrides({"l2.size": "6 MiB", "dram.load_to_use": "364.5 core_cycles"})
    assert pickle.loads(pickle.dumps(changed)) == changed
    path = write(tmp_path / "machine.toml", changed.to_toml())
    assert Machine.load(path) == changed
    assert tomllib.loads(path.read_text())["dram"]["load_to_use"] == "364.5 core_cycles"


def test_a_file_may_start_from_a_preset(tmp_path: Path) -> None:
    path = write(
        tmp_path / "mine.toml",
        'base = "v100"\nname = "mine"\n[link]\nbandwidth = "75 GB/s"\n'
        '[l2]\nsize = "12 MiB"\n[sources]\n"link.bandwidth" = "three bricks"\n',
    )
    mine, base = Machine.load(path), Machine.load("v100")
    assert mine.name == "mine"
    assert mine.bytes_per_s(mine.link.bandwidth) == 75 * 10**9
    assert mine.source("link.bandwidth") == "three bricks"
    assert mine.source("l2.size") == "not named by the machine file"
    assert mine.source("l1.size") == base.source("l1.size")
    assert mine.sm == base.sm


def test_a_section_s_source_is_that_of_its_keys_in_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path / "mine.toml",
        'base = "v100"\nname = "mine"\n[l2]\nsize = "12 MiB"\nways = 48\n[dram]\nchannels = 64\n'
        '[dram.timing]\ntRP = "15 ns"\ntCL = "16 ns"\n'
        '[sources]\n"l2" = "a sheet"\n"l2.ways" = "a book"\n"dram" = "a standard"\n"dram.timing.tCL" = "a sample"\n',
    )
    mine, base = Machine.load(path), Machine.load("v100")
    changed = {key: source for key, source in mine.sources.items() if source != base.sources.get(key)}
    assert changed == {
        "l2.size": "a sheet",
        "l2.ways": "a book",
        "dram.channels": "a standard",
        "dram.timing.tRP": "a standard",
        "dram.timing.tCL": "a sample",
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "name: this key is missing; clock: this section is missing"),
        ("name = ", "not valid TOML: "),
        (b"\xff\xfe\x00", "not a machine file: byte 0 is not UTF-8 text"),
        (b"\0" * 100, "not valid TOML: "),
        ("x = " + "[" * 5000, "not valid TOML: "),
        ("a" * (2**20 + 1), "not a machine file: longer than 1048576 bytes"),
        ('base = "v101"', "base: 'v101': unknown preset"),
        ("base = 3", "base: 3: unknown preset"),
        ('base = "v100"\nl2 = 3', "l2: 3 is not a section of keys"),
        ('base = "v100"\n[l2]\nwayz = 3', "l2.wayz: unknown key (nearest: l2.ways)"),
        ('base = "v100"\n[l3]\nsize = 3', "l3: unknown key"),
        ('base = "v100"\n[sources]\n"l2.wayz" = "a book"', "sources: l2.wayz: unknown key (nearest: l2.ways)"),
        ('base = "v100"\n[sources]\n"l2" = "a book"', "sources: l2: a section, not a key: expected one of l2.size, "),
        ('base = "v100"\nsources = 3', "sources: "),
        ('base = "v100"\n[l2]\nsize = 1979-05-27', "not valid TOML: '1979-05-27' is a date or a time: expected none"),
        ('base = "v100"\n[sm]\ncount = 1.5', "sm.count: 1.5 is not an integer"),
    ],
)
def test_bad_files(tmp_path: Path, content: str | bytes, problem: str) -> None:
    assert file_refusal(write(tmp_path / "bad.toml", content)).startswith(problem)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert file_refusal(tmp_path / "absent.toml") == "can't read the machine file: No such file or directory"
    assert file_refusal(tmp_path) == "can't read the machine file: Is a directory"


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(BuddysimError, match=r"p100-nvlink: unknown machine \(nearest: p100-nvlink2\)"):
        Machine.load("p100-nvlink")
