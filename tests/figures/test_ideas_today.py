"""Which idea pays in half of the memory: half is half, every scheme has a row, and the page says what the rows say."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.figures import ResultSource, ideas_today
from buddysim.figures.ideas_today import COLUMNS, idea_of, needed_bytes
from buddysim.figures.shared.ideas_page import best, page_lines
from buddysim.sweep.study_file import read_study
from buddysim.training import schemes, simulate
from tests.cli.test_train_config import CONFIG
from tests.docs.shell import ROOT

PAGE = ROOT / "docs" / "explanation" / "ideas-today.md"
STUDY = """
engine = "training"
[set]
machine = "h100-sxm"
network = "config.json"
batch = 2
sequence = 64
[grid]
link = ["pcie4"]
"""


def stored() -> list[dict[str, Any]]:
    with PAGE.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = [*csv.DictReader(file)]
    for row in rows:
        row |= {name: float(row[name]) for name in ("memory_gib", "slowdown", "shortfall_gib")}
        row |= {name: row[name] == "True" for name in ("fits", "is_lossy")}
        row |= {name: row[name] or None for name in ("memory", "nothing_to_do")}
    return rows


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return folder / "study.toml"


@pytest.mark.slow
def test_every_scheme_runs_in_half_of_the_memory(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    assert main(["plot", "ideas-today", str(small), "-o", str(path), "--store", str(tmp_path / "store")]) == 0
    assert {one.name for one in tmp_path.iterdir()} == {"p.png", "p.csv", "p.md", "store"}
    with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    eager = simulate(str(small.with_name("config.json")), 2, "h100-sxm", sequence=64)
    half = needed_bytes(eager.counters) // 2
    assert {float(row["memory_gib"]) for row in rows} == {half / 2**30}
    runnable = {name for name in schemes.runnable_schemes((), recorded=True) if schemes.family(name) != "baselines"}
    own = {row["scheme"]: row for row in rows}
    assert {*own} == runnable | {"eager"}
    assert own["eager"]["fits"] == "False"
    assert own["cswap"]["nothing_to_do"]


def test_the_page_and_its_table_are_of_the_same_numbers() -> None:
    assert PAGE.read_text(encoding="utf-8").splitlines() == [*page_lines(stored())]
    points = [dict(point.settings) for point in read_study(ideas_today.DEFAULT_FILE).points()]
    assert {(row["network"], row["link"]) for row in stored()} == {(one["network"], one["link"]) for one in points}


def test_an_ideas_best_scheme_is_the_fastest_that_fits_else_the_nearest() -> None:
    row = dict.fromkeys(COLUMNS)
    slow, fast = ({**row, "fits": True, "slowdown": slowdown, "shortfall_gib": 0.0} for slowdown in (3.0, 1.5))
    far, near = ({**row, "fits": False, "slowdown": 1.0, "shortfall_gib": short} for short in (9.0, 2.0))
    idle = {**row, "fits": True, "slowdown": 1.0, "nothing_to_do": "nothing to offload"}
    assert best([idle, far, slow, fast, near]) is fast
    assert best([idle, far, near]) is near
    assert best([idle]) is None


def test_families_of_papers_are_ideas_and_lossy_schemes_apart() -> None:
    assert idea_of("vdnn-dyn", False) == "vdnn"
    assert idea_of("gist-fp8", True) == "gist, lossy"
    assert idea_of("offload-optimizer", False) == "offload-optimizer"


def test_a_study_without_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('engine = "training"\n[set]\nnetwork = "alexnet"\n', encoding="utf-8")
    with pytest.raises(BuddysimError, match="link: expected each point to have one"):
        ideas_today.data(ResultSource(file=tmp_path / "study.toml"))


@pytest.mark.slow
def test_stored_numbers_are_the_simulations() -> None:
    for scheme in ("activation-checkpointing", "offload-activations"):
        row = next(
            one for one in stored()
            if (one["network"], one["link"], one["scheme"]) == ("llama-3.1-8b", "nvlink-c2c", scheme)
        )  # fmt: skip
        point = next(
            dict(one.settings)
            for one in read_study(ideas_today.DEFAULT_FILE).points()
            if (one.settings["network"], one.settings["link"]) == ("llama-3.1-8b", "nvlink-c2c")
        )
        source = ResultSource()
        eager = source.training.result_of("training", {**point, "scheme": "eager", "memory_bytes": 1 << 50})
        memory = needed_bytes(eager) // 2
        fresh = source.training.result_of("training", {**point, "scheme": scheme, "memory_bytes": memory})
        assert fresh["fits"] is row["fits"]
        assert fresh["time_ms"] / eager["time_ms"] == pytest.approx(row["slowdown"], rel=0.02)
