"""Machines for training: every figure has a source, links resolve, errors are one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine, TrainingMachine
from buddysim.machine.presets import training_presets
from buddysim.machine.training import shared_links

BOTH = sorted({*TrainingMachine.names()} & {*Machine.presets()})


def test_machines_for_training_only_have_names_of_their_own() -> None:
    assert {*training_presets()} | {*BOTH} == {*TrainingMachine.names()}
    assert not {*training_presets()} & {*Machine.presets()}


@pytest.mark.parametrize("name", TrainingMachine.names())
def test_every_figure_has_a_source(name: str) -> None:
    machine = TrainingMachine.load(name)
    assert machine.name == name
    assert set(machine.sources) == set(machine.dotted_keys())
    assert all(len(source) > 3 for source in machine.sources.values())


def test_the_machine_of_the_vdnn_paper() -> None:
    machine = TrainingMachine.load("titan-x")
    assert machine.fp32_flops == 7 * 10**12
    assert machine.dram_bytes_per_s == 336 * 10**9
    assert machine.memory_bytes == 12 << 30
    assert (machine.sms, machine.clock_hz, machine.launch_ps) == (24, 1_075_000_000, 5_000_000)
    assert machine.max_pinned_bytes < machine.host_memory_bytes == 64 << 30
    assert machine.library == "cudnn4"
    assert machine.link == "pcie3"
    assert machine.link_rate.offload_bytes_per_s == machine.link_rate.prefetch_bytes_per_s == 12_800_000_000


@pytest.mark.parametrize(
    ("name", "link", "out", "back", "host_gb"),
    [
        ("v100", "pcie3", 12.8, 12.8, 68),
        ("a100-40", "pcie4", 25.6, 25.6, 128),
        ("h100-sxm", "pcie5", 51.2, 51.2, 256),
        ("h200", "pcie5", 51.2, 51.2, 256),
        ("gh200", "nvlink-c2c", 297, 375, 480),
    ],
)
def test_link_and_host_of_its_own_time(name: str, link: str, out: float, back: float, host_gb: int) -> None:
    machine = TrainingMachine.load(name)
    assert machine.link == link
    assert machine.link_rate.offload_bytes_per_s == pytest.approx(out * 1e9)
    assert machine.link_rate.prefetch_bytes_per_s == pytest.approx(back * 1e9)
    assert machine.host_memory_bytes // 10**9 == host_gb
    assert machine.host_memory_bytes - machine.max_pinned_bytes < 3 * 10**9


@pytest.mark.parametrize("name", BOTH)
def test_both_tables_of_a_file_agree(name: str) -> None:
    replayed, trained = Machine.load(name), TrainingMachine.load(name)
    assert trained.sms == replayed.sm.count
    assert trained.clock_hz == replayed.clock.core.hz
    assert trained.memory_bytes == replayed.dram.capacity
    assert trained.dram_bytes_per_s == pytest.approx(replayed.dram_bytes_per_s, rel=0.005)


def test_a_replay_does_not_depend_on_the_table() -> None:
    machine = Machine.load("v100")
    assert machine.with_overrides({"training.link": "pcie5"}).checksum == machine.checksum


def test_overrides() -> None:
    machine = TrainingMachine.load("v100")
    changed = machine.with_overrides({"training.link": "pcie3-measured", "training.device_memory": "2 GiB"})
    assert changed.link_rate.offload_bytes_per_s == 11_700_000_000
    assert changed.link_rate.prefetch_bytes_per_s == 10_600_000_000
    assert changed.memory_bytes == 2 << 30
    assert changed.source("training.device_memory") == "given for this run (was: 32 GiB)"
    assert changed.checksum != machine.checksum
    slower = machine.with_overrides({"training.links.pcie3.d2h_bandwidth": "6 GB/s"})
    assert slower.link_rate.offload_bytes_per_s == 6 * 10**9


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"training.link": "pcie6"}, r"training.link: 'pcie6' is not a link: .*\(nearest: pcie"),
        ({"training.lnk": "pcie4"}, r"training.lnk: unknown key \(nearest: training.link\)"),
        ({"training.device_memory": "12"}, "training.device_memory: '12' is not a size: the unit is missing"),
        ({"training.fp32": "7 TFLOPs"}, r"training.fp32: .*\(nearest: TFLOPS\)"),
        ({"training.fp32": "1 FLOPS"}, "training.fp32: 1 FLOPS is out of range"),
        (
            {"training.links.pcie3.d2h_bandwidth": "1 B/core_cycle"},
            "d2h_bandwidth: 1 B/core_cycle is not a rate per second",
        ),
        (
            {"training.max_pinned_memory": "65 GiB"},
            "training.max_pinned_memory: 65 GiB is more than training.host_memory, 64 GiB",
        ),
    ],
)
def test_bad_overrides(overrides: dict[str, object], problem: str) -> None:
    with pytest.raises(BuddysimError, match=problem) as caught:
        TrainingMachine.load("v100").with_overrides(overrides, where="--set")
    assert "\n" not in str(caught.value)


def test_unknown_and_unsuitable_names() -> None:
    with pytest.raises(BuddysimError, match=r"titanx: unknown machine \(nearest: titan-x\)"):
        TrainingMachine.load("titanx")
    with pytest.raises(BuddysimError, match=r"p100-nvlink2: no \[training\] table"):
        TrainingMachine.load("p100-nvlink2")
    with pytest.raises(BuddysimError, match="titan-x describes a GPU for training only and can't replay a trace"):
        Machine.load("titan-x")


def test_a_users_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'base = "titan-x"\nname = "mine"\n[training]\nlink = "slow"\n'
        '[training.links.slow]\nd2h_bandwidth = "3 GB/s"\nh2d_bandwidth = "4 GB/s"\n'
    )
    machine = TrainingMachine.load(path)
    assert machine.link_rate.offload_bytes_per_s == 3 * 10**9
    assert machine.fp32_flops == 7 * 10**12
    assert set(shared_links()) < set(machine.links)
    again = tmp_path / "again.toml"
    again.write_text(machine.to_toml())
    assert TrainingMachine.load(again).checksum == machine.checksum
    path.write_text('base = "v100"\nname = "mine"\n[training]\nsms = 40\n')
    assert TrainingMachine.load(path).sms == 40
    assert Machine.load(path).sm.count == 80


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('base = "titan-x"\n[trainin]\nsms = 3', "trainin: unknown key"),
        ('base = "titan-x"\n[training]\nsm = 3', r"training.sm: unknown key \(nearest: training.sms\)"),
        ('name = "x"\n[training]\nsms = 3', "training.fp32: this key is missing"),
        ('name = "x"\ntraining = 3', "training: 3 is not a section of keys"),
        ('base = "titan-x"\n[training]\nlinks = 3', "training.links"),
        ('base = "titan-x"\nsources = 3', "sources: 3 is not a section of keys"),
        ('base = "titan-x"\n[sources]\n"training.sm" = "a book"', r"sources: training.sm: unknown key \(nearest: "),
        ('base = "titan-x"\n[training.links.pcie3]\nofload = "3 GB/s"', "training.links.pcie3.ofload: unknown key"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(content)
    with pytest.raises(BuddysimError, match=problem) as caught:
        TrainingMachine.load(path)
    assert "\n" not in str(caught.value)
