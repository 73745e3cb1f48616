"""`assumptions`: the slowdowns of a scheme with other values of assumed keys, from the store of a sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import buddysim
from buddysim.cli import main
from buddysim.machine.assumptions import Assumption
from buddysim.sweep.assumptions import Decided

ROOT = Path(__file__).parents[2]
LUD = str(ROOT / "traces" / "lud256.bin")


@pytest.mark.slow
def test_slowdowns_are_those_of_simulations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, only = tmp_path / "a.json", "metadata_cache.interleaving,l1.line"
    command = ["assumptions", LUD, "--store", str(tmp_path / "store"), "--workers", "1", "--only", only]
    assert main([*command, "--json", str(out)]) == 0
    first, screen = capsys.readouterr(), out.read_text()
    assert "4 points: 0 in the store, 4 to simulate" in first.err
    rows = {row["key"]: row for row in json.loads(screen)}
    for value, slowdown in rows["metadata_cache.interleaving"]["slowdowns"].items():
        machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"metadata_cache.interleaving": value})
        times = [buddysim.simulate(LUD, machine, scheme).counters["time_ps"] for scheme in ("buddy", "ideal")]
        assert slowdown == times[0] / times[1]
    assert [*rows["metadata_cache.interleaving"]["slowdowns"]] == ["hashed", "own_slice"]
    assert "without another value: l1.line" in first.out
    assert main(command) == 0
    again = capsys.readouterr()
    assert (again.out, "4 in the store, 0 to simulate" in again.err) == (first.out, True)


@pytest.mark.parametrize(("only", "problem"), [("l1.mshr", "nearest: l1.mshrs"), ("l2.size", "no key with an assumed")])
def test_a_key_that_is_not_assumed_is_refused(only: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assumptions", LUD, "--only", only]) == 2
    assert problem in capsys.readouterr().err


def test_the_span_is_the_largest_slowdown_over_the_smallest() -> None:
    one = Decided(Assumption("k", "1", ("0", "2"), "assumed"), {"1": 1.5, "0": 1.0, "2": 3.0})
    assert (one.least, one.largest, one.span) == ("0", "2", 3.0)
