"""tools/measure_codecs.py: which points it simulates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from buddysim.gpu_codecs.samples import SHIPPED, CodecSample, read_samples, write_samples
from tests.tools.test_tools import load

ONE = CodecSample("v100", "zvc", "coalesced", 10, 64, 2**23, 0.5, 5_000_000, 30, 20, 10)


def test_points_of_a_file_once_for_all_machines_and_only_simulated_ones(tmp_path: Path) -> None:
    tool = load("measure_codecs")
    others = [replace(ONE, grid=197), replace(ONE, machine="rtx-2080-ti"), replace(ONE, grid=80, origin="interpolated")]
    (found,) = tool.experiments_of([ONE, *others])
    assert (found.codec, found.layout, found.byte_count, found.sparsity) == ("zvc", "coalesced", 2**23, 0.5)
    assert {(launch.grid, launch.block) for launch in found.launches} == {(10, 64), (197, 64)}


def test_anew_names_what_the_new_file_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = load("measure_codecs")
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    write_samples(old, [ONE, replace(ONE, grid=197), replace(ONE, codec="rle")])
    write_samples(new, [ONE])
    assert tool.main(["--anew", str(old), "-o", str(new), "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "rle coalesced 8 MiB, 50% zeros, 1 launches",
        "zvc coalesced 8 MiB, 50% zeros, 1 launches",
    ]
    assert tool.main(["--anew", str(old), "-o", str(old)]) == 2
    assert "expected another file after -o" in capsys.readouterr().err


def test_every_machine_has_the_same_points_in_the_file_that_ships() -> None:
    points: dict[str, set[tuple[object, ...]]] = {}
    for one in read_samples(Path(str(SHIPPED))):
        if one.origin == "simulated":
            point = (one.codec, one.layout, one.byte_count, one.sparsity, one.grid, one.block)
            points.setdefault(one.machine, set()).add(point)
    assert points["v100"] == points["rtx-2080-ti"]
