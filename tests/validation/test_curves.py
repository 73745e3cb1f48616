"""``validate curves``: measured curves, their replays, the fit, and the files that the command writes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from buddysim.base.validation_table import COLUMNS
from buddysim.cli import main
from buddysim.machine import Machine
from buddysim.validation import REGISTRY, ValidationOptions
from buddysim.validation.curve import curve_data
from buddysim.validation.curve.curve_data import MeasuredCurve
from buddysim.validation.curve.fit import fit_machine
from buddysim.validation.curve.replays import (
    replay_point,
    simulate_chase,
    simulate_per_sm_loads,
    simulate_strides,
    stream_shape,
)

ROOT = Path(__file__).parents[2]
HEAD = ",".join(curve_data.COLUMNS)
V100 = curve_data.load_cards()["v100"].at_its_clocks()


def curves_of(card: str) -> list[MeasuredCurve]:
    return [curve for curve in curve_data.load_curves() if curve.card == card]


def file_of(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "curves.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def test_cards_have_presets_and_sources() -> None:
    for card in curve_data.load_cards().values():
        assert card.machine in Machine.presets()
        assert set(card.clocks) == set(card.sources)
        card.at_its_clocks()
    assert {curve.card for curve in curve_data.load_curves()} == set(curve_data.load_cards())


def test_fit_takes_the_plateaus() -> None:
    fitted = fit_machine(V100, curves_of("v100"))
    assert fitted.keys["l1.load_to_use"] == "28.0 core_cycles"
    assert fitted.keys["l2.load_to_use"] == "212.1 core_cycles"
    assert fitted.keys["crossbar.reply_bandwidth"] == "21.9 B/core_cycle"
    assert set(fitted.used) == {
        "v100, pointer_chase_latency (RRZE-HPC)",
        "v100, load_bandwidth_per_sm_working_set (te42kyfo)",
        "v100, stream_read (te42kyfo)",
    }
    held_out = next(
        curve for curve in curves_of("v100") if curve.benchmark.endswith("latency") and curve.source == "te42kyfo"
    )
    assert held_out.name not in fitted.used


def test_fit_without_plateaus_changes_nothing() -> None:
    assert fit_machine(V100, [curve for curve in curves_of("v100") if curve.benchmark == "stream_triad"]).keys == {}


def test_chase_takes_the_latencies_of_the_machine() -> None:
    machine = V100.with_overrides({"l1.load_to_use": "30 core_cycles", "l2.load_to_use": "200 core_cycles"})
    assert simulate_chase(machine, 16 * 1024, 128) == pytest.approx(30, rel=0.01)
    assert simulate_chase(machine, 100 * 1024, 64) == pytest.approx(30, rel=0.01)
    assert simulate_chase(machine, 512 * 1024, 128) == pytest.approx(200, rel=0.01)


def test_chase_of_half_lines_leaves_the_l1_gradually() -> None:
    """With two elements per line, LRU retains a part of a footprint that is somewhat larger than the L1."""
    full_line, half_line = (simulate_chase(V100, 144 * 1024, stride) for stride in (128, 64))
    assert full_line == pytest.approx(212, rel=0.01)
    assert 60 < half_line < 170


def test_per_sm_bandwidth_is_the_l1s_then_the_crossbars() -> None:
    small = V100.with_overrides({"sm.count": 4})
    rate = 4 * 1.38  # of 1 B per cycle and SM, GB/s
    assert simulate_per_sm_loads(small, 32 * 1024) == pytest.approx(128 * rate, rel=0.05)
    assert simulate_per_sm_loads(small, 512 * 1024) == pytest.approx(21.9 * rate, rel=0.03)


def test_strided_load_takes_a_cycle_per_line() -> None:
    assert simulate_strides(V100, 0) == pytest.approx(1, rel=0.05)
    assert simulate_strides(V100, 8) == pytest.approx(8 + 7 / 8, rel=0.05)


@pytest.mark.parametrize(("stride", "cycles"), [(0, 1), (1, 1), (2, 2), (5, 2), (8, 8), (9, 3)])
def test_strided_load_takes_the_bank_conflict_cycles(stride: int, cycles: float) -> None:
    h200 = curve_data.load_cards()["h200"].at_its_clocks().with_overrides({"dram.timing.tREFI": "0 ns"})
    assert simulate_strides(h200, stride) == pytest.approx(cycles, rel=0.02)


def test_stream_has_the_launch_shape_of_its_source() -> None:
    read = next(curve for curve in curves_of("v100") if curve.benchmark == "stream_read")
    assert [stream_shape(V100, read, x) for x in (3, 50, 100)] == [(2, 32), (2, 512), (2, 1024)]
    other = MeasuredCurve("gh200", "RRZE-HPC", "stream_read", (), ())
    assert [stream_shape(V100, other, x) for x in (0.8, 5.5, 6.2, 7.8)] == [(1, 16), (1, 112), (2, 64), (1, 160)]
    assert replay_point(V100, MeasuredCurve("v100", "-", "something_else", (), ()), 1) is None


def test_command_writes_the_table_every_point_and_a_page(tmp_path, capsys) -> None:
    rows = [f"v100,RRZE-HPC,pointer_chase_latency,footprint_kB,{x},cycles,{y},1380" for x, y in ((4, 28), (512, 212))]
    data = file_of(tmp_path, *rows)
    folder = tmp_path / "out"
    assert main(["validate", "curves", "--machine", "v100", "--data", str(data), "-o", str(folder)]) == 0
    assert "pass: 2 of 2 quantities with a tolerance" in capsys.readouterr().out
    with (folder / "validation.csv").open() as file:
        table = list(csv.DictReader(file))
    assert tuple(table[0]) == COLUMNS
    assert {row["status"] for row in table if row["tolerance_fraction"]} == {"pass"}
    with (folder / "curves.csv").open() as file:
        points = list(csv.DictReader(file))
    assert [(row["x"], row["fitted"]) for row in points] == [("4.0", "1"), ("512.0", "1")]
    page = (folder / "hardware.md").read_text()
    assert "2 of 2 quantities are within tolerance" in page
    assert "pointer_chase_latency" in page
    assert (folder / "curves.png").stat().st_size > 1000


def test_preset_without_curves_is_an_error_and_not_checked(capsys) -> None:
    assert main(["validate", "curves", "--machine", "p100-nvlink2"]) == 2
    error = capsys.readouterr().err
    assert "p100-nvlink2: no reference values for curves of this machine: expected one of v100" in error
    assert error.count("\n") == 1
    (row,) = REGISTRY.find("curves").compare(ValidationOptions("p100-nvlink2")).quantities
    assert row.status == "not checked"


def test_wrong_curve_fails(tmp_path: Path) -> None:
    rows = [f"v100,te42kyfo,strided_l1_load,stride_floats,{x},cycles,{y},1380" for x, y in ((0, 1), (1, 5), (2, 9))]
    quantities = REGISTRY.find("curves").compare(ValidationOptions("v100", file_of(tmp_path, *rows))).quantities
    assert [row.status for row in quantities] == ["fail", "fail"]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["v100,a,b,c,1,d,x,1380"], "line 2: y: expected a number, got 'x'"),
        (["v100,a,b,c,1"], "line 2: 5 columns, expected 8"),
        (["v100,a,b,c,1,d,0,1380"], "line 2: y: expected more than 0, got '0'"),
        (["k20,a,b,c,1,d,1,1380"], "'k20' is not a card: expected one of v100, a100_80"),
    ],
)
def test_wrong_measurements_give_one_line_errors(tmp_path, capsys, rows, problem) -> None:
    assert main(["validate", "curves", "--data", str(file_of(tmp_path, *rows))]) == 2
    assert problem in capsys.readouterr().err


def test_unknown_machine_is_an_error(capsys) -> None:
    assert main(["validate", "curves", "--machine", "v101"]) == 2
    assert "v101: unknown machine" in capsys.readouterr().err


@pytest.mark.slow
def test_stored_table_is_up_to_date(tmp_path: Path) -> None:
    """Return all rows of the V100."""
    fresh = [list(map(str, row.row)) for row in REGISTRY.find("curves").compare(ValidationOptions("v100")).quantities]
    with (ROOT / "docs" / "validation" / "validation.csv").open() as file:
        stored = [row[:-1] for row in csv.reader(file) if row[:2] == ["curves", "v100"]]
    assert [[cell.replace("None", "") for cell in row] for row in fresh] == stored
