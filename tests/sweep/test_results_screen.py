"""The screen of results without DuckDB is a plain table, with the same columns and order as with DuckDB."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.sweep import index
from buddysim.sweep.store import Store

ROOT = Path(__file__).parents[2]
LUD, BFS = (str(ROOT / "traces" / f"{name}.bin") for name in ("lud256", "bfs-volta"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with results of both engines, and one trace without data values."""
    store = tmp_path_factory.mktemp("screen") / "store"
    common = ["--store", str(store), "--workers", "1"]
    links = ["--set", "link.bandwidth=50GB/s,100GB/s"]
    assert main(["sweep", BFS, "--scheme", "buddy,ideal", *links, "--baseline", *common]) == 0
    assert main(["sweep", "train", "alexnet", "--batch", "64,32", "--link", "pcie3,nvlink2", *common]) == 0
    return store


@pytest.fixture(autouse=True)
def _without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "installed", lambda: False)


def shown(capsys: pytest.CaptureFixture[str], store: Path, *arguments: str) -> str:
    capsys.readouterr()
    assert main(["results", "--store", str(store), *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_screen(
    folder: Path, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in ((), ("--columns", "list"), ("--columns", "key,scheme,l2.size,time_ps")):
        assert max(map(len, shown(capsys, folder, *arguments).splitlines())) <= width


def test_each_engine_has_its_own_columns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replays, trainings = shown(capsys, folder).split("training:")
    headings = replays.splitlines()[1:3]
    assert headings[1].split() == ["key", "trace", "scheme", "sizes", "bandwidth", "time", "vs_ideal"]
    assert headings[0].split() == ["link.", "slowdown_"]
    assert trainings.splitlines()[2].split()[-5:] == ["scheme", "batch", "link", "time", "vs_oracle"]


def test_rows_are_sorted_by_the_settings_that_vary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replays, trainings = shown(capsys, folder).split("training:")
    rows = [line.split() for line in replays.splitlines() if re.match(r"[0-9a-f]{10} ", line)]
    assert [(row[2], row[4]) for row in rows] == [
        ("buddy", "50.0"),
        ("buddy", "100"),
        ("ideal", "50.0"),
        ("ideal", "100"),
    ]
    rows = [line.split() for line in trainings.splitlines() if re.match(r"[0-9a-f]{10} ", line)]
    assert [row[-5:-3] for row in rows] == [["32", "nvlink2"], ["32", "pcie3"], ["64", "nvlink2"], ["64", "pcie3"]]


def test_times_are_in_their_natural_unit_with_three_digits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    screen = shown(capsys, folder)
    assert re.search(r"^\w{10}  bfs-volta.bin +ideal +- +50\.0 GB/s +\d{3} us +1\.00$", screen, re.M)
    assert re.search(r" \d\d\.\d ms +\d\.\d\d$", screen, re.M)


def test_synthetic_sizes_are_marked_in_each_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    screen = shown(capsys, folder)
    assert len(re.findall(r"buddy +synthetic", screen)) == 2
    assert len(re.findall(r"ideal +- ", screen)) == 2
    assert "sizes sampled from a distribution" in screen.replace("\n", " ").replace("  ", " ")
    store = Store.at(folder)
    sizes = {record.row.get("sizes") for key in store.all_keys() if (record := store.get(key)) is not None}
    assert sizes == {"synthetic", None}


def test_a_ratio_of_synthetic_sizes_is_never_shown_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rows = shown(capsys, folder, "--columns", "scheme,compression.ratio").splitlines()
    assert first.split() == ["scheme", "compression.ratio", "sizes"]
    assert sum(row.startswith("buddy") and row.endswith("synthetic") for row in rows) == 2


def test_the_other_columns_are_counted_and_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(r"^\d{3} more columns: results --columns list$", shown(capsys, folder), re.M)
    listed = shown(capsys, folder, "--columns", "list")
    for heading in ("settings:", "machine keys:", "counters:", "others:"):
        assert heading in listed
    for name in ("l2.read_sector_misses", "slowdown_vs_ideal", "memory.peak_bytes", "sizes"):
        assert name in listed


def test_columns_can_be_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *_ = shown(capsys, folder, "--columns", "key,l2.size,time_ps").splitlines()
    assert first.split() == ["key", "l2.size", "time", "sizes"]
    assert main(["results", "--store", str(folder), "--columns", "l2.siez"]) == 2
    assert "--columns: l2.siez: unknown column (nearest: l2.size)" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--where", "--sql", "-o"])
def test_queries_and_files_name_the_extra_that_they_need(
    folder: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["results", "--store", str(folder), option, "x.csv"]) == 2
    assert f"{option}: needs DuckDB and pyarrow: expected pip install 'buddysim[sweep]'" in capsys.readouterr().err


def test_an_empty_store_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store.at(tmp_path / "s").check_writable()
    assert main(["results", "--store", str(tmp_path / "s")]) == 2
    assert "no results: expected a store that a sweep wrote" in capsys.readouterr().err
