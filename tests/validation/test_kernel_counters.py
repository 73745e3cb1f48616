"""``validate kernels``: counters and replays, which kernels are compared, and the files that the command writes."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest

from buddysim.base.validation_table import COLUMNS
from buddysim.cli import main
from buddysim.machine import Machine
from buddysim.synthetic import make_trace
from buddysim.trace import open_trace
from buddysim.validation import REGISTRY, ValidationOptions
from buddysim.validation.kernel.counter_data import PROGRAMS, load_measured_kernels
from buddysim.validation.kernel.pairs import KernelPair, QuantityErrors, pair_kernels
from buddysim.validation.kernel.replays import KernelReplay, load_stored_replays, made_with, replay_kernel

ROOT = Path(__file__).parents[2]
GV100 = Machine.load("gv100")


def as_measured(program: str, number: int = 0, **changed: float) -> KernelReplay:
    """Return a replay with the measured counters, except those changed."""
    kernel = load_measured_kernels()[program][number]
    counters = replace(kernel.counters, **changed)
    return KernelReplay(program, number, program, kernel.grid, kernel.block, counters, made_with(GV100))


def pair(kernel_replay: KernelReplay) -> KernelPair:
    (result,) = pair_kernels(load_measured_kernels(), [kernel_replay])
    return result


def test_every_program_has_counters_and_launch_shapes() -> None:
    measured = load_measured_kernels()
    assert set(PROGRAMS) <= set(measured)
    assert all(kernel.grid and kernel.block for name in PROGRAMS for kernel in measured[name])


def test_kernels_are_compared_by_requests_and_launch_shape() -> None:
    reads = load_measured_kernels()["gemm"][0].counters.read_requests
    assert pair(as_measured("gemm", warp_instructions=1, cycles=1)).why_not == ""
    assert pair(as_measured("gemm", read_requests=1.0099 * reads)).why_not == ""
    assert pair(as_measured("gemm", read_requests=1.0101 * reads)).why_not.startswith("read requests: 8,48")
    assert pair(as_measured("gemm", write_requests=0)).why_not.startswith("write requests: 0, on the GPU 4,202,496")
    other = replace(as_measured("gemm"), block="16x16")
    assert pair(other).why_not == "launched as 16x64 blocks of 16x16, on the GPU 16x64 of 32x8"


def test_launches_beyond_the_measured_ones_are_ignored() -> None:
    assert pair_kernels(load_measured_kernels(), [replace(as_measured("gemm"), number=1)]) == []


def test_quantity_errors_follow_the_rule() -> None:
    errors = QuantityErrors([("a", 110, 100), ("a", 130, 100), ("a", 100, 200), ("b", 120, 100)])
    assert (errors.median, errors.mean) == pytest.approx((0.25, 0.275))
    assert errors.mean_of_program_medians == pytest.approx((0.3 + 0.2) / 2)
    assert errors.totals == pytest.approx((60 / 400 + 0.2) / 2)
    linear = QuantityErrors([("a", 2 * x**3, x) for x in (1.0, 10.0, 1000.0)])
    assert linear.log_correlation == pytest.approx(1)
    assert QuantityErrors([("a", 1 / x, x) for x in (1.0, 2.0)]).log_correlation == pytest.approx(-1)
    assert math.isfinite(QuantityErrors([("a", 1, 2)]).log_correlation)
    assert math.isnan(QuantityErrors([("a", 1, 2), ("b", 1, 3)]).log_correlation)


def test_kernel_replays_from_cold_caches(tmp_path: Path) -> None:
    """Two launches of STREAM's copy: the second one hits no line of the first."""
    path = tmp_path / "copies.bin"
    make_trace("stream", path, {"op": "copy", "laps": "2", "footprint": "64KiB"})
    with open_trace(path) as trace:
        cold = GV100.with_overrides({"l2.fill_on_memcpy": False})
        first, second = (replay_kernel("p", trace, kernel, cold, ("", "")) for kernel in trace.kernels)
    assert first.counters == second.counters
    assert first.counters.dram_sectors >= first.counters.read_sectors > 0
    assert first.counters.read_requests > 0 < first.counters.write_requests


def test_stored_replays_are_of_known_programs() -> None:
    assert {result.program for result in load_stored_replays()} <= set(PROGRAMS)


def test_command_writes_the_table_and_every_kernel(tmp_path, capsys) -> None:
    assert main(["validate", "kernels", "-o", str(tmp_path)]) == 0
    assert "quantities with a tolerance" in capsys.readouterr().out
    with (tmp_path / "kernels.csv").open() as file:
        points = list(csv.DictReader(file))
    again = REGISTRY.find("kernels").compare(ValidationOptions(captures=tmp_path / "kernels.csv"))
    assert len(again.rows) == len(points) == len(load_stored_replays())
    assert again.quantities == REGISTRY.find("kernels").compare(ValidationOptions()).quantities


def test_stored_table_is_up_to_date() -> None:
    report = REGISTRY.find("kernels").compare(ValidationOptions())
    with (ROOT / "docs" / "validation" / "validation.csv").open() as file:
        written = [row[:-1] for row in csv.reader(file) if row[0] == "kernels"]
    fresh = [["" if cell is None else str(cell) for cell in row.row] for row in report.quantities]
    assert fresh == written
    assert len(written[0]) == len(COLUMNS) - 1


def test_other_machines_are_not_checked(capsys) -> None:
    assert main(["validate", "kernels", "--machine", "v100"]) == 2
    assert "v100: no reference values for kernels of this machine: expected one of gv100" in capsys.readouterr().err
    (row,) = REGISTRY.find("kernels").compare(ValidationOptions("v100")).quantities
    assert row.status == "not checked"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("program,kernel\n", "there is no column name"),
        (None, "no captures: expected files such as gemm.bin"),
    ],
)
def test_wrong_captures_give_one_line_errors(tmp_path, capsys, text, problem) -> None:
    path = tmp_path / "captures"
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    assert main(["validate", "kernels", "--captures", str(path)]) == 2
    assert problem in capsys.readouterr().err
