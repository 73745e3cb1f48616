"""Bundled machines are complete, name their sources, and agree with their data sheets."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.dotted import flat
from buddysim.base.errors import BuddysimError
from buddysim.base.validation_table import page_rows
from buddysim.machine import Machine, TrainingMachine
from buddysim.machine.fields import default_source
from buddysim.machine.model import keys
from buddysim.machine.presets import every_preset, nearest_machines, preset, replay_presets
from buddysim.machine.section import default_text
from buddysim.machine.training_table import NVME
from buddysim.replay import simulate
from tests.validation.stored import TABLE

TRACES = Path(__file__).parents[2] / "traces"

PRESETS = resources.files("buddysim.machine") / "presets"


@pytest.mark.parametrize("name", Machine.presets())
def test_every_figure_has_a_source(name: str) -> None:
    machine = Machine.load(name)
    assert machine.name == name
    stated = {key for key, _ in flat(preset(name)) if not key.startswith("sources.")} - {"name", "description"}
    assert stated <= set(machine.sources)
    assert all(len(source) > 3 for source in machine.sources.values())


def test_every_default_has_a_source() -> None:
    defaults = {key: field for key, field in keys() if not field.is_required() and key != "description"}
    assert [key for key, field in defaults.items() if len(default_source(field)) < 4] == []


def own_figures(name: str) -> tuple[str | None, dict[str, Any]]:
    """The base that a preset's file names, and the figures that the file itself states."""
    folder = PRESETS if name in replay_presets() else PRESETS / "training"
    content = tomllib.loads((folder / f"{name}.toml").read_text())
    return content.get("base"), {key: value for key, value in flat({**content, "sources": {}}) if "." in key}


@pytest.mark.parametrize("name", every_preset())
def test_a_preset_states_what_differs_from_its_base(name: str) -> None:
    base, figures = own_figures(name)
    below = dict(flat(preset(base))) if base else {}
    assert [key for key, value in figures.items() if below.get(key) == value] == []


@pytest.mark.parametrize("name", Machine.presets())
def test_a_preset_states_no_default_unless_its_base_differs(name: str) -> None:
    base, figures = own_figures(name)
    below, fields = dict(flat(preset(base))) if base else {}, dict(keys())
    optional = {key for key in figures.keys() - below.keys() if key in fields and not fields[key].is_required()}
    assert [key for key in optional if str(figures[key]).lower() == default_text(fields[key]).lower()] == []


@pytest.mark.parametrize("name", TrainingMachine.names())
def test_a_preset_leaves_a_default_to_the_default_s_source(name: str) -> None:
    machine = TrainingMachine.load(name)
    fields = {key: machine._field(key) for key in machine.sources}
    repeated = {key: field for key, field in fields.items() if machine.sources[key] == default_source(field)}
    assert [key for key, field in repeated.items() if machine.text(key) == default_text(field)] == []
    assert machine.source("training.nvme_read_bandwidth") == f"default: {NVME}"


def test_a_silent_preset_shows_the_default_and_its_source() -> None:
    machine = Machine.load("p100-nvlink2")
    assert machine.is_default("l2.partitions")
    assert machine.source("l2.partitions") == "default: no partitions are known"
    assert not machine.is_default("l2.size")
    assert Machine.load("a100-40").source("l2.partitions") == Machine.load("a100-40").sources["l2.partitions"]
    changed = machine.with_overrides({"l2.interleave_granularity": "4 KiB"}).to_dict()
    del changed["sources"]["l2.interleave_granularity"]
    assert Machine._checked(changed, "mine").source("l2.interleave_granularity") == "not named by the machine file"


def test_paper_machine_is_table_2() -> None:
    machine = Machine.load("p100-nvlink2")
    assert (machine.sm.count, machine.sm.schedulers, machine.sm.policy, machine.sm.warps) == (56, 2, "gto", 64)
    assert (machine.l1.size, machine.sm.shared_memory) == (24 * 1024, 64 * 1024)
    assert (machine.l2.size, machine.l2.slices, machine.l2.ways, machine.l2.line) == (4 << 20, 32, 16, 128)
    assert (machine.dram.channels, machine.dram.pseudo_channels) == (32, 2)
    assert machine.dram_bytes_per_s == 896 * 10**9
    assert machine.bytes_per_s(machine.link.bandwidth) == 150 * 10**9
    assert machine.metadata_cache.size == 32 * 4096
    assert machine.ps(machine.compression.latency) == 12571


@pytest.mark.parametrize(
    ("name", "sms", "l2_mib", "gb_per_s", "link_gb_per_s"),
    [
        ("v100", 80, 6, 900, 154.686),
        ("a100-40", 108, 40, 1555, 300),
        ("a100-80", 108, 40, 2039, 300),
        ("h100-sxm", 132, 50, 3350, 450),
        ("h200", 132, 60, 4800, 450),
        ("gh200", 132, 60, 4000, 450),
        ("qv100-accelsim", 80, 6, 870, 154.686),
    ],
)
def test_data_sheet_figures(name: str, sms: int, l2_mib: int, gb_per_s: int, link_gb_per_s: float) -> None:
    machine = Machine.load(name)
    assert machine.sm.count == sms
    assert machine.l2.size == l2_mib << 20
    assert machine.dram_bytes_per_s / 1e9 == pytest.approx(gb_per_s, rel=0.005)
    assert machine.bytes_per_s(machine.link.bandwidth) == round(link_gb_per_s * 10**9)


@pytest.mark.parametrize("name", Machine.presets())
def test_bursts_fit_their_cycles(name: str) -> None:
    """A 32 B burst takes exactly tCCD_S, so that bank groups can keep the bus full."""
    machine = Machine.load(name)
    burst_ps = 32 * 10**12 / machine.bytes_per_s(machine.dram.pseudo_channel_bandwidth)
    assert float(machine.exact_ps(machine.dram.timing.tCCD_S)) == pytest.approx(burst_ps, rel=1e-6)


def test_accelsim_machine_is_its_configuration() -> None:
    machine = Machine.load("qv100-accelsim")
    assert (machine.clock.core.hz, machine.clock.dram.hz) == (1_132_000_000, 850_000_000)
    assert (machine.l1.size, machine.sm.policy, machine.sm.schedulers) == (128 * 1024, "lrr", 4)
    assert machine.l2.size // machine.l2.slices == 96 * 1024
    assert (machine.l2.ways, machine.dram.channels) == (24, 32)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("a100", ["a100-40", "a100-80"]),
        ("H100", ["h100-96", "h100-pcie", "h100-sxm"]),
        ("2080-ti", ["rtx-2080-ti"]),
        ("gtx1080ti", ["gtx-1080-ti"]),
        ("4090", ["rtx-4090"]),
        ("4080", []),
        ("v10", ["v100"]),
        ("titanx", ["titan-x"]),
        ("nothing-like-it", []),
    ],
)
def test_unknown_name_suggests_variants_of_its_model(name: str, near: list[str]) -> None:
    assert nearest_machines(name, every_preset()) == near


def test_unknown_name_lists_all_variants_of_a_model() -> None:
    assert nearest_machines("a100", ["a100-40", "a100-80", "a10"]) == ["a100-40", "a100-80"]


def test_plain_model_names_are_unknown() -> None:
    with pytest.raises(BuddysimError, match=r"^a100: unknown machine \(nearest: a100-40, a100-80\)$"):
        Machine.load("a100")
    with pytest.raises(BuddysimError, match=r"^4080: unknown machine: expected a name that `buddysim machines` lists"):
        Machine.load("4080")


def fitted_values() -> list[tuple[str, str, str]]:
    """The newest fits to measured curves: (preset, key, value), as the table of all comparisons has them."""
    rows = [row for row in page_rows(TABLE, "hardware") if row["status"] == "fitted"]
    return [(row["machine"], row["quantity"].removeprefix("fitted "), row["note"].partition(";")[0]) for row in rows]


@pytest.mark.parametrize(("name", "key", "fitted"), fitted_values())
def test_measured_cards_carry_their_newest_fit(name: str, key: str, fitted: str) -> None:
    machine = Machine.load(name)
    own, new = (float(re.match(r"[0-9.]+", text)[0]) for text in (machine.text(key), fitted))  # type: ignore[index]
    assert machine.text(key).split()[1:] == fitted.split()[1:]
    assert own == pytest.approx(new, rel=0.005)


def test_every_measured_card_has_fits() -> None:
    assert {name for name, _, _ in fitted_values()} == {"v100", "a100-80", "h200", "gh200"}


@pytest.mark.parametrize(
    ("name", "to_gpu", "from_gpu", "within"),
    [
        ("gh200", 375, 297, 0.004),  # Schieffer et al., which its header and write_bandwidth are fitted to
        ("v100", 143.7, 143.7, 0.02),  # copies one way, six links
        ("a100-80", 276.3, 276.3, 0.03),  # nvbandwidth, copies one way, twelve links
    ],
)
def test_packets_leave_what_was_measured(name: str, to_gpu: float, from_gpu: float, within: float) -> None:
    """Of pages that migrate, as the payload's part of the bytes on the link, without the other direction's requests."""
    machine = Machine.load(name).with_overrides({"um.eviction_granularity": "64 KiB"})
    moved = simulate(TRACES / "vectoradd-turing.bin", machine, "unified-memory").counters
    headers = moved["link.migration_in_bytes"] // 256 * 16 if machine.link.protocol == "nvlink" else 0
    for way, payload, rate, measured in (
        ("write", moved["link.migration_out_bytes"], machine.link.write_bandwidth, from_gpu),
        ("read", moved["link.migration_in_bytes"], machine.link.bandwidth, to_gpu),
    ):
        others = headers if way == "write" else moved["link.migration_out_bytes"] // 256 * 16 * (headers > 0)
        raw = machine.bytes_per_s(rate) or machine.bytes_per_s(machine.link.bandwidth)
        total = moved[f"link.{way}_bytes"] - others
        assert raw * payload / total / 1e9 == pytest.approx(measured, rel=within)


@pytest.mark.parametrize("name", replay_presets())
def test_every_latency_says_whose_it_is(name: str) -> None:
    """Fitted, measured, published for a card, or assumed."""
    machine = Machine.load(name)
    for part in ("l1", "l2", "dram", "link"):
        source = machine.sources[f"{part}.load_to_use"]
        assert len(source) > 20
        assert re.search(r"[Aa]ssumed|fitted|measured|arXiv|gpu-benches|SIGMOD|GPGPU-Sim|Accel-Sim|Choukse", source)
