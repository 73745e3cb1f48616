"""The screen of ``validate``: its order, its columns, and its width at 80, 120 and 200 columns and in a pipe."""

from __future__ import annotations

import pytest

from buddysim.cli import main
from buddysim.report.screen import format_as_text
from buddysim.report.validation_screen import validation_parts
from buddysim.validation import REGISTRY, ComparedQuantity, Reference, reference_of
from buddysim.validation.comparison import CORRELATION, FACTOR, MEDIAN_ERROR

REFERENCE = Reference(
    "simulator", "simulated by Other 1.0", "Latencies are fitted.", "Queues were changed.", "Chases are held out."
)
ROWS = [
    ComparedQuantity("c", "m", "vectoradd-turing", "cycles", "cycles", 15172, 16604, -0.0862, 0.1),
    ComparedQuantity("c", "m", "jacobi2d", "cycles", "cycles", 9000, 10000, -0.1, 0.05),
    ComparedQuantity("c", "m", "programs", "log correlation", "", 0.99944, None, 0.00056, 0.002, "", CORRELATION),
    ComparedQuantity(
        "c", "m", "microbenchmarks", "median error", error=0.0269, tolerance=0.05, error_kind=MEDIAN_ERROR
    ),
    ComparedQuantity("c", "m", "bfs", "bytes in", "B", 2**20, 2**21, 1.0, 1.0, "", FACTOR),
    ComparedQuantity("c", "m", "units", "cycles", "cycles", 10, 10, 0.0),
    *(ComparedQuantity("c", "m", f"t{n}", "sectors read", "sectors", 10, 10, 0.0, group="sectors") for n in range(3)),
    ComparedQuantity("c", "m", "copybig", "sectors written", "sectors", 9, 10, -0.1, group="sectors"),
    ComparedQuantity("c", "m", "m", "fitted l1.load_to_use", note="28 cycles"),
    ComparedQuantity("c", "v100", "every trace", "all", note="no figures"),
]


def screen(width: int | None = 80, *, show_all: bool = False, rows: list[ComparedQuantity] = ROWS) -> list[str]:
    return format_as_text(validation_parts("c: a summary", rows, REFERENCE, show_all=show_all), width).splitlines()


def test_answer_and_reference_come_first() -> None:
    lines = screen()
    assert lines[:2] == ["c: a summary", "reference: simulated by Other 1.0"]
    assert "pass: 4 of 5 quantities with a tolerance" in lines[:5]


def test_table_has_the_quantities_with_a_tolerance_and_failures_first() -> None:
    lines = screen()
    heading = next(n for n, line in enumerate(lines) if line.startswith("subject"))
    assert lines[heading].split() == ["subject", "quantity", "reference", "simulated", "error", "tolerance", "status"]
    first, second, *_ = lines[heading + 1 :]
    assert first.split() == ["jacobi2d", "cycles", "10,000", "9,000", "-10.0", "%", "5", "%", "fail"]
    assert second.split()[-6:] == ["15,172", "-8.6", "%", "10", "%", "pass"]
    assert not any(line.startswith("units") for line in lines)


def test_errors_have_the_unit_of_their_kind() -> None:
    text = "\n".join(screen(120))
    assert "median |error|" in text
    assert "0.9994" in text
    assert "0.0006      0.002  pass" in text
    assert "Error of a correlation r: 1 - r." in text
    assert "2x         2x  pass" in text


def test_hidden_rows_are_counted_and_shown_with_all() -> None:
    assert "5 more quantities without a tolerance: --all" in screen()
    assert any(line.startswith("units") and "no tolerance" in line for line in screen(120, show_all=True))
    assert not any("--all" in line for line in screen(show_all=True))


def test_groups_are_one_line() -> None:
    assert "sectors: 3 of 4 within 0.1 %, largest error -10.0 % (copybig, written)" in screen()


def test_fits_changes_and_held_out_quantities_are_stated() -> None:
    text = "\n".join(screen())
    for sentence in (REFERENCE.fitted, REFERENCE.changed, REFERENCE.held_out, "Fitted machine keys: l1.load_to_use."):
        assert sentence in text
    assert "not checked: v100 (no figures)" in text


def test_long_subjects_get_a_line_of_their_own() -> None:
    name = "a100_80, load_bandwidth_per_sm_working_set (te42kyfo)"
    rows = [ComparedQuantity("c", "m", name, "L1 capacity transition", "KiB", 174, 227, -0.234, 0.15)]
    lines = screen(rows=rows)
    assert name in lines
    cells = ["L1", "capacity", "transition", "227", "KiB", "174", "KiB", "-23.4", "%", "15", "%", "fail"]
    assert cells in [line.split() for line in lines]


def test_many_quantities_show_the_failed_ones() -> None:
    rows = [ComparedQuantity("c", "m", f"s{n}", "cycles", "cycles", 1, 1, n / 100, 0.4) for n in range(45)]
    lines = screen(rows=rows)
    assert sum(line.endswith("fail") for line in lines) == 4
    assert "41 more quantities within tolerance: --all" in lines


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("show_all", [False, True])
def test_no_line_is_wider_than_the_screen(width: int, show_all: bool) -> None:
    assert max(map(len, screen(width, show_all=show_all))) <= width


@pytest.mark.parametrize("columns", [None, "80", "120", "200"])
def test_command_keeps_to_the_width_and_prints_results_only(columns, monkeypatch, capsys) -> None:
    """In a pipe (no COLUMNS) a screen has 80 columns."""
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    assert main(["validate", "kernels"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert max(map(len, lines)) <= int(columns or 80)
    assert any(line.startswith("pass: ") for line in lines[:12])
    assert err == ""


def test_every_comparison_states_its_reference() -> None:
    for name in REGISTRY.names():
        reference = reference_of(name)
        assert reference.kind in ("hardware", "simulator")
        for sentence in (reference.fitted, reference.changed, reference.held_out):
            assert sentence.endswith(".")
            assert sentence == sentence.strip()
            assert "\n" not in sentence
