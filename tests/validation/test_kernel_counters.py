"""``validate kernels``: counters beside replays, which kernels are compared, and what the page says of them."""

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
from buddysim.validation.kernel.counter_data import PROGRAMS, measured_kernels
from buddysim.validation.kernel.pairs import KernelPair, QuantityErrors, pair_kernels
from buddysim.validation.kernel.replays import KernelReplay, made_with, replay, stored_replays

ROOT = Path(__file__).parents[2]
GV100 = Machine.load("gv100")


def as_measured(program: str, number: int = 0, **changed: float) -> KernelReplay:
    """A replay that counts what was measured, but for some counts."""
    theirs = measured_kernels()[program][number]
    counts = replace(theirs.counts, **changed)
    return KernelReplay(program, number, program, theirs.grid, theirs.block, counts, made_with(GV100))


def pair(one: KernelReplay) -> KernelPair:
    (found,) = pair_kernels(measured_kernels(), [one])
    return found


def test_every_program_is_measured_and_its_launches_are_known() -> None:
    counted = measured_kernels()
    assert set(PROGRAMS) <= set(counted)
    assert all(kernel.grid and kernel.block for name in PROGRAMS for kernel in counted[name])


def test_requests_and_launches_decide_what_is_compared() -> None:
    reads = measured_kernels()["gemm"][0].counts.read_requests
    assert pair(as_measured("gemm", warp_instructions=1, cycles=1)).why_not == ""
    assert pair(as_measured("gemm", read_requests=1.0099 * reads)).why_not == ""
    assert pair(as_measured("gemm", read_requests=1.0101 * reads)).why_not.startswith("read requests: 8,48")
    assert pair(as_measured("gemm", write_requests=0)).why_not.startswith("write requests: 0, there 4,202,496")
    other = replace(as_measured("gemm"), block="16x16")
    assert pair(other).why_not == "launched as 16x64 blocks of 16x16, there 16x64 of 32x8"


def test_launches_beyond_the_measured_ones_are_left_out() -> None:
    assert pair_kernels(measured_kernels(), [replace(as_measured("gemm"), number=1)]) == []


def test_measures_are_what_the_rule_says() -> None:
    side = QuantityErrors([("a", 110, 100), ("a", 130, 100), ("a", 100, 200), ("b", 120, 100)])
    assert (side.median, side.mean) == pytest.approx((0.25, 0.275))
    assert side.of_programs == pytest.approx((0.3 + 0.2) / 2)
    assert side.totals == pytest.approx((60 / 400 + 0.2) / 2)
    straight = QuantityErrors([("a", 2 * x**3, x) for x in (1.0, 10.0, 1000.0)])
    assert straight.log_correlation == pytest.approx(1)
    assert QuantityErrors([("a", 1 / x, x) for x in (1.0, 2.0)]).log_correlation == pytest.approx(-1)
    assert math.isfinite(QuantityErrors([("a", 1, 2)]).log_correlation)


def test_a_kernel_replays_cold_and_alone(tmp_path: Path) -> None:
    """Two launches of STREAM's copy: the second one finds nothing of the first in the caches."""
    path = tmp_path / "copies.bin"
    make_trace("stream", path, {"op": "copy", "laps": "2", "footprint": "64KiB"})
    with open_trace(path) as trace:
        cold = GV100.with_overrides({"l2.fill_on_memcpy": False})
        first, second = (replay("p", trace, kernel, cold, ("", "")) for kernel in trace.kernels)
    assert first.counts == second.counts
    assert first.counts.dram_sectors >= first.counts.read_sectors > 0
    assert first.counts.read_requests > 0 < first.counts.write_requests


def test_the_stored_replays_are_of_every_program() -> None:
    assert {one.program for one in stored_replays()} <= set(PROGRAMS)


def test_the_command_writes_a_table_and_every_kernel(tmp_path, capsys) -> None:
    assert main(["validate", "kernels", "-o", str(tmp_path)]) == 0
    assert "goals met" in capsys.readouterr().out
    with (tmp_path / "validation-silicon-kernels.csv").open() as file:
        points = list(csv.DictReader(file))
    again = REGISTRY.find("kernels").compare(ValidationOptions(captures=tmp_path / "validation-silicon-kernels.csv"))
    assert len(again.rows) == len(points) == len(stored_replays())
    assert again.quantities == REGISTRY.find("kernels").compare(ValidationOptions()).quantities


def test_the_page_is_up_to_date() -> None:
    one = REGISTRY.find("kernels").compare(ValidationOptions())
    assert "\n".join(one.document) in (ROOT / "docs" / "validation-silicon.md").read_text()
    with (ROOT / "docs" / "validation.csv").open() as file:
        written = [row[:-1] for row in csv.reader(file) if row[0] == "kernels"]
    fresh = [["" if cell is None else str(cell) for cell in row.row] for row in one.quantities]
    assert fresh == written
    assert len(written[0]) == len(COLUMNS) - 1


def test_other_machines_are_not_checked(capsys) -> None:
    assert main(["validate", "kernels", "--machine", "v100"]) == 0
    assert "not checked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("program,kernel\n", "there is no column name"),
        (None, "no captures: expected files such as gemm.bin"),
    ],
)
def test_wrong_captures_are_errors_of_one_line(tmp_path, capsys, text, problem) -> None:
    path = tmp_path / "captures"
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    assert main(["validate", "kernels", "--captures", str(path)]) == 2
    assert problem in capsys.readouterr().err
