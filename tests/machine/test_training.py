"""Machines for training: every figure has a source, links resolve, errors are one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine, TrainingMachine
from buddysim.machine.presets import training_presets
from buddysim.machine.training import gpu_links, shared_links
from buddysim.training.cost.operators.constants import fitted_constants
from buddysim.training.cost.operators.rows import read_steps

BOTH = sorted({*TrainingMachine.names()} & {*Machine.presets()})


def test_machines_for_training_only_have_names_of_their_own() -> None:
    assert {*training_presets()} | {*BOTH} == {*TrainingMachine.names()}
    assert not {*training_presets()} & {*Machine.presets()}


@pytest.mark.parametrize("name", TrainingMachine.names())
def test_every_figure_has_a_source(name: str) -> None:
    machine = TrainingMachine.load(name)
    assert machine.name == name
    sources = {key: machine.source(key) for key in machine.dotted_keys()}
    assert [key for key, source in sources.items() if len(source) < 4 or source.startswith("not named")] == []


def test_the_machine_of_the_vdnn_paper() -> None:
    machine = TrainingMachine.load("titan-x")
    assert machine.training.fp32 == 7 * 10**12
    assert machine.dram_bytes_per_s == 336 * 10**9
    assert machine.memory_bytes == 12 << 30
    assert (machine.training.sms, machine.clock_hz, machine.launch_ps) == (24, 1_075_000_000, 5_000_000)
    assert machine.max_pinned_bytes < machine.host_memory_bytes == 64 << 30
    assert machine.library == "cudnn4"
    assert machine.link == "pcie3"
    assert machine.link_rate.offload_bytes_per_s == machine.link_rate.prefetch_bytes_per_s == 12_800_000_000


@pytest.mark.parametrize(
    ("name", "link", "out", "back", "host_gb"),
    [
        ("v100", "pcie3", 12.8, 12.8, 68),
        ("a100-40", "pcie4", 26.8, 26, 128),
        ("h100-sxm", "pcie5", 50, 50, 256),
        ("h200", "pcie5", 50, 50, 256),
        ("gh200", "nvlink-c2c", 297, 375, 480),
        ("b200", "pcie5", 50, 50, 256),
        ("rtx-5090", "pcie5-measured", 57.3, 56.3, 68),
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
    assert trained.training.sms == replayed.sm.count
    assert trained.clock_hz == replayed.clock.core.hz
    assert trained.training.device_memory == replayed.dram.capacity
    assert trained.training.l2_cache in (None, replayed.l2.size)
    assert trained.dram_bytes_per_s == pytest.approx(replayed.dram_bytes_per_s, rel=0.005)


#: Dense rates in TFLOPS from data sheets: FP32, BF16 with FP32 accumulation, FP8; SMs, GB/s, MiB of L2, watts.
TODAY = {
    "a100-40": (19.5, 312, None, 108, 1555, 40, 400),
    "a100-80": (19.5, 312, None, 108, 2039, 40, 400),
    "h100-sxm": (66.9, 989.4, 1978.9, 132, 3350, 50, 700),
    "h100-pcie": (51.2, 756, 1513, 114, 2039, 50, 350),
    "h100-96": (66.9, 989.4, 1978.9, 132, 2400, 50, 500),
    "h200": (66.9, 989.4, 1978.9, 132, 4800, 60, 700),
    "gh200": (66.9, 989.4, 1978.9, 132, 4000, 60, 700),
    "b200": (74.45, 2250, 4500, 148, 8000, 126.5, 1000),
    "l4": (30.3, 121, 242.5, 58, 300, 48, 72),
    "l40s": (91.6, 362, 733, 142, 864, 96, 350),
    "a10": (31.2, 125, None, 72, 600, 6, 150),
    "a40": (37.4, 149.7, None, 84, 696, 6, 300),
    "a6000": (38.7, 154.8, None, 84, 768, 6, 300),
    "rtx-3090": (35.6, 71, None, 82, 936, 6, 350),
    "rtx-4070-ti-super": (44.1, 88.2, 176.4, 66, 672, 48, 285),
    "rtx-4090": (82.6, 165.2, 330.3, 128, 1008, 72, 450),
    "rtx-5060-ti": (23.7, 47.4, 94.8, 36, 448, 32, 180),
    "rtx-5090": (104.8, 209.5, 419, 170, 1792, 96, 575),
    "rtx-pro-6000": (126, 503.8, 1007.6, 188, 1792, 128, 600),
}


@pytest.mark.parametrize("name", TODAY)
def test_figures_of_todays_gpus(name: str) -> None:
    fp32, bf16, fp8, sms, bandwidth, l2, power = TODAY[name]
    machine = TrainingMachine.load(name)
    table = machine.training
    assert table.fp32 / 1e12 == pytest.approx(fp32, rel=0.003)
    assert table.bf16 == table.fp16 == bf16 * 10**12
    assert table.fp8 == (None if fp8 is None else fp8 * 10**12)
    assert (table.sms, table.power_limit_w, table.l2_cache) == (sms, power, l2 * 2**20)
    assert machine.dram_bytes_per_s == bandwidth * 10**9
    assert 0.91 * table.device_memory < machine.memory_bytes < 1.075 * table.device_memory  # GB, some decimal
    assert machine.training.gpu_link in gpu_links()


@pytest.mark.parametrize("name", TODAY)
def test_peak_rates_are_those_of_the_lanes_at_the_clock(name: str) -> None:
    """An SM has 64 lanes (A100) or 128; its tensor cores do 2 to 32 times as many BF16 operations."""
    table = TrainingMachine.load(name).training
    lanes = 64 if name.startswith("a100") else 128
    assert table.fp32 == pytest.approx(2 * lanes * table.sms * table.clock.hz, rel=0.01)
    assert table.bf16 is not None
    assert table.bf16 / table.fp32 == pytest.approx(
        {"a100": 16, "h100": 14.8, "h200": 14.8, "gh200": 14.8, "b200": 30.2}.get(name.partition("-")[0])
        or (2 if name.startswith("rtx") and name != "rtx-pro-6000" else 4), rel=0.02)  # fmt: skip


def test_memory_that_is_set_can_be_used() -> None:
    machine = TrainingMachine.load("h100-sxm")
    assert machine.memory_bytes == 81009 << 20
    overrides = {"training.device_memory": "24 GiB", "training.host_memory": "64 GiB"}
    changed = machine.with_overrides(overrides)
    assert changed.memory_bytes == 24 << 30
    assert changed.checksum == machine.checksum_with(overrides) != machine.checksum
    assert machine.with_overrides({"training.usable_memory": "20 GiB"}).memory_bytes == 20 << 30
    with pytest.raises(BuddysimError, match=r"gpu_link: 'nvlink9' is not a link between GPUs: .*nearest: nvlink"):
        machine.with_overrides({"training.gpu_link": "nvlink9"})


def test_both_directions_of_a_link_at_once() -> None:
    links = TrainingMachine.load("h100-sxm").links
    assert links["pcie3"].shared_fractions == (1, 1)
    assert float(sum(links["pcie5"].shared_fractions) * 50) == pytest.approx(83.4)
    assert float(links["pcie4"].shared_fractions[1] * 26) == pytest.approx(18.6)
    assert links["nvlink-c2c"].shared_fractions == (0.5, 0.5)
    assert links["pcie4-pageable"].prefetch_bytes_per_s < links["pcie4"].prefetch_bytes_per_s / 2


#: Rates that links_measured.csv has for a link, in GB/s: from the GPU, to it, and of both directions at once in all.
MEASURED_LINKS = {
    "pcie4": (None, 26.0, None),  # nvbandwidth's README: 25.94 to 26.19, copy engine
    "pcie5": (50, 50, 83.4),  # vLLM on an H100, "up to about 50"; the same amount each way
    "nvlink-c2c": (297, 375, None),  # Schieffer et al.; another GH200: 297 and 377
}


@pytest.mark.parametrize("name", sorted(shared_links()))
def test_each_link_has_its_measured_rates_or_says_where_they_are_from(name: str) -> None:
    machine = TrainingMachine.load("h100-sxm")
    link, table = machine.links[name], shared_links()[name]
    out, back, both = MEASURED_LINKS.get(name, (None, None, None))
    for measured, rate in ((out, link.offload_bytes_per_s), (back, link.prefetch_bytes_per_s)):
        assert measured is None or rate == measured * 10**9
    if both is not None:
        shared = link.shared_fractions
        total = shared[0] * link.offload_bytes_per_s + shared[1] * link.prefetch_bytes_per_s
        assert float(total) == pytest.approx(both * 1e9)
    assert len(table["source"]) > 20
    assert ("d2h_shared" in table) == ("h2d_shared" in table) == ("shared_source" in table)


@pytest.mark.parametrize("name", sorted(gpu_links()))
def test_each_link_between_gpus_has_sources(name: str) -> None:
    table = gpu_links()[name]
    assert len(table["source"]) > 20
    assert {"network_bandwidth", "network_latency", "network_source"} <= set(table) or not any(
        key.startswith("network") for key in table
    )


def test_cards_without_nvlink_are_linked_over_pcie() -> None:
    """GeForce cards, A10, L4 and L40S copy by way of the host, others from card to card."""
    links = {name: TrainingMachine.load(name).training.gpu_link for name in TODAY}
    over_pcie = {name: link for name, link in links.items() if link is not None and link.startswith("pcie")}
    assert {name for name, link in over_pcie.items() if link.endswith("-through-host")} == {
        "a10", "l4", "l40s", "rtx-3090", "rtx-4070-ti-super", "rtx-4090", "rtx-5060-ti", "rtx-5090",
    }  # fmt: skip
    assert {name for name, link in over_pcie.items() if link.endswith("-peer")} == {
        "a40", "a6000", "h100-pcie", "rtx-pro-6000",
    }  # fmt: skip


def test_an_h100_of_torchtitan_has_constants_of_no_rows_of_its_own() -> None:
    """`h100-96` is predicted; no row of its hosts is among those that constants are fitted to."""
    assert "h100-96" not in fitted_constants()
    assert not [step.id for step in read_steps() if step.gpu == "h100-96" and step.fitted]


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
    assert machine.training.fp32 == 7 * 10**12
    assert set(shared_links()) < set(machine.links)
    again = tmp_path / "again.toml"
    again.write_text(machine.to_toml())
    assert TrainingMachine.load(again).checksum == machine.checksum
    path.write_text('base = "v100"\nname = "mine"\n[training]\nsms = 40\n')
    assert TrainingMachine.load(path).training.sms == 40
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


@pytest.mark.parametrize("name", TrainingMachine.names())
def test_pytorchs_workspace_is_that_of_the_compute_capability(name: str) -> None:
    """32 MiB from Hopper on, else two buffers of 4 MiB and eight of 16 KiB (PyTorch, CublasHandlePool.cpp)."""
    machine = TrainingMachine.load(name)
    if machine.training.compute_capability is None:
        assert machine.workspace_bytes == machine.bytes_outside_allocator(8) == 0
        return
    recent = int(machine.training.compute_capability.split(".")[0]) >= 9
    assert machine.workspace_bytes == (32 << 20 if recent else (2 * 4096 + 8 * 16) << 10)


def test_what_a_process_takes_outside_of_the_allocator() -> None:
    machine = TrainingMachine.load("a100-80")
    assert machine.bytes_outside_allocator() == 400 * 10**6
    assert machine.bytes_outside_allocator(8) == 1088 * 10**6
