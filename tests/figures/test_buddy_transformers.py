"""`plot buddy-transformers`: machines scaled to a trace, and the page that the shipped traces give."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.figures import ResultSource, buddy_transformers
from buddysim.figures.buddy_transformers import COLUMNS, PROGRAMS, TENSORS, TransformersTable
from buddysim.figures.shared.scaled_gpu import ScaledGpu
from tests.docs.generated import page

ROOT = Path(__file__).parents[2]
STORED = ROOT / "docs" / "explanation" / "buddy-transformers.csv"


def shipped_rows() -> list[dict[str, str]]:
    with STORED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def value(text: str) -> float | str | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def test_a_gpu_is_scaled_to_eight_channels_and_a_quarter_of_the_footprint() -> None:
    small = ScaledGpu.of("h100-sxm", 4 << 20).settings()
    assert (small["sm.count"], small["dram.channels"], small["l2.slices"]) == (13, 8, 8)  # 132 / 10
    assert small["l2.size"] == f"{51 * 20480} B"  # of 1 MiB, in sets of 8 slices x 20 ways x 128 B
    assert small["link.bandwidth"] == "45 GB/s"
    large = ScaledGpu.of("gh200", 1 << 30).settings(150)
    assert large["l2.size"] == f"{60 * 2**20 // 12} B"  # never more than its part of the machine's
    assert large["link.bandwidth"] == "12.5 GB/s"
    assert ScaledGpu.of("gh200", 1 << 30).settings()["link.write_bandwidth"] == "29.775 GB/s"


def test_every_footprint_is_four_times_the_l2() -> None:
    rows = [row for row in shipped_rows() if row["part"] != "tensor"]
    assert {row["program"] for row in rows} == set(PROGRAMS)
    assert all(float(row["footprint_mib"]) >= 4 * float(row["l2_mib"]) for row in rows)


def test_the_page_is_that_of_the_numbers() -> None:
    rows = [tuple(value(row[name]) for name in COLUMNS) for row in shipped_rows()]
    table = TransformersTable(COLUMNS, rows)
    assert "\n".join(table.page()) + "\n" == page("explanation/buddy-transformers.md")


def test_traces_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(BuddysimError, match=f"{TENSORS}.bin: not found: expected a folder"):
        buddy_transformers.data(ResultSource(file=tmp_path))


@pytest.mark.slow
def test_the_numbers_are_those_of_the_shipped_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buddy_transformers, "MACHINES", ("gh200",))
    monkeypatch.setattr(buddy_transformers, "LINKS", (64,))
    made = buddy_transformers.data(ResultSource(file=ROOT / "traces"))
    shipped = {tuple(row[name] for name in COLUMNS[:9]): row for row in shipped_rows()}
    rows = [dict(zip(made.columns, row, strict=True)) for row in made.csv_rows()[1:]]
    assert {row["program"] for row in rows if row["program"]} == set(PROGRAMS)
    for row in rows:
        assert {name: str(value) for name, value in row.items()} == shipped[tuple(str(row[n]) for n in COLUMNS[:9])]


def test_decode_is_slowed_down_where_pages_in_use_overflow() -> None:
    (row,) = (
        row
        for row in shipped_rows()
        if (row["part"], row["machine"], row["program"], row["scheme"]) == ("link", "h100-sxm", "paged-decode", "buddy")
        and (row["threshold"], row["link_gbs"]) == ("0.6", "450")
    )
    assert float(row["slowdown"]) > 1.05
