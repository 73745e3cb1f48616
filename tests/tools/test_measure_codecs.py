"""tools/measure_codecs.py simulates the expected points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from buddysim.gpu_codecs.samples import SHIPPED, CodecSample, read_samples, write_samples
from tests.tools.test_tools import load

ONE = CodecSample("v100", "zvc", "coalesced", 10, 64, 2**23, 0.5, 5_000_000, 30, 20, 10)


def test_experiments_have_each_simulated_point_once_for_all_machines(tmp_path: Path) -> None:
    tool = load("measure_codecs")
    others = [replace(ONE, grid=197), replace(ONE, machine="rtx-2080-ti"), replace(ONE, grid=80, origin="interpolated")]
    (experiment,) = tool.experiments_of([ONE, *others])
    assert (experiment.codec, experiment.layout, experiment.byte_count, experiment.sparsity) == (
        "zvc",
        "coalesced",
        2**23,
        0.5,
    )
    assert {(launch.grid, launch.block) for launch in experiment.launches} == {(10, 64), (197, 64)}


def test_anew_lists_the_missing_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_bundled_file_has_the_same_points_for_every_machine() -> None:
    points: dict[str, set[tuple[object, ...]]] = {}
    for sample in read_samples(Path(str(SHIPPED))):
        if sample.origin == "simulated":
            point = (sample.codec, sample.layout, sample.byte_count, sample.sparsity, sample.grid, sample.block)
            points.setdefault(sample.machine, set()).add(point)
    assert points["v100"] == points["rtx-2080-ti"]
