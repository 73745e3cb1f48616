"""cDMA's engine: published figures, and requirements of other links."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.machine.training import TrainingMachine
from buddysim.training.schemes.cdma_engine import copy_ps, engine, left_over_bytes_per_s, pipeline_ps, read_cap, report

GB = 10**9
TITAN_X = {"dram_bytes_per_s": 336 * GB, "fp32_flops": 7 * 10**12}


def test_the_published_engine() -> None:
    gen3 = engine(16 * GB)
    assert gen3.read_bytes_per_s == 200 * GB
    assert gen3.buffer_bytes == 70_000  # 200 GB/s x 350 ns
    assert (gen3.units_mm2, gen3.buffer_mm2) == (0.31, pytest.approx(0.21))
    assert gen3.area_mm2 == gen3.scaled_area_mm2 == pytest.approx(0.52)
    assert gen3.units_needed == 6
    assert 5 * 32 * 1_075_000_000 < gen3.read_bytes_per_s <= 6 * 32 * 1_075_000_000
    assert engine(16 * GB, clock_hz=1_000_000_000).units_needed == 7  # six reach 192 of 200 GB/s at the base clock


def test_faster_links_need_a_larger_engine() -> None:
    gen5 = engine(64 * GB)
    assert gen5.buffer_bytes == 280_000
    assert gen5.area_mm2 == pytest.approx(1.15)
    assert gen5.scaled_area_mm2 == pytest.approx(2.08)
    assert gen5.area_mm2 < 1.5 < gen5.scaled_area_mm2  # the paper's figure lies between
    assert engine(8 * GB).buffer_bytes == 70_000  # a slower link still asks for 200 GB/s


def test_a_copy_takes_the_longer_of_link_and_memory() -> None:
    # 1 GB that halves: 0.5 GB at 16 GB/s; memory would give it in 5 ms.
    assert copy_ps(10**9, 5 * 10**8, 16 * GB, 200 * GB) == 31_250_000_000
    # 13.8 times smaller: 4.53 ms on the link, but 5 ms in memory.
    assert copy_ps(10**9, 10**9 * 10 // 138, 16 * GB, 200 * GB) == 5_000_000_000
    assert copy_ps(10**9, 10**9 * 10 // 138, 16 * GB, 236 * GB) == pytest.approx(10**12 / 13.8 / 16, rel=1e-6)
    # Bandwidth-aware: no more than three times faster than uncompressed.
    assert copy_ps(10**9, 10**8, 16 * GB, 48 * GB) == 20_833_333_334
    # Longer than it was.
    assert copy_ps(10**9, 10**9 * 33 // 32, 16 * GB, 200 * GB) == 64_453_125_000
    assert copy_ps(0, 0, 16 * GB, 200 * GB) == 0


def test_caps() -> None:
    left_over = left_over_bytes_per_s(**TITAN_X)
    assert left_over == 236 * GB
    assert (
        read_cap(16 * GB, left_over) == read_cap(12_800_000_000, left_over) == read_cap(8 * GB, left_over) == 200 * GB
    )
    assert read_cap(16 * GB, left_over, bandwidth_aware=True) == 48 * GB
    assert read_cap(32 * GB, left_over) == 236 * GB
    assert read_cap(32 * GB, left_over, bandwidth_aware=True) == 96 * GB
    assert read_cap(64 * GB, 2000 * GB) == 800 * GB
    assert left_over_bytes_per_s(10 * GB, 7 * 10**12) == 0
    assert read_cap(450 * GB, 236 * GB) == 450 * GB  # what an uncompressed copy would take


def test_pipeline_latency_of_the_engine_is_negligible() -> None:
    assert pipeline_ps() == 5582
    assert pipeline_ps(decompress=True) == 1861
    smallest = 256 * 13 * 13 * 4  # AlexNet's smallest feature map, one sample
    shortest = copy_ps(smallest, 0, 16 * GB, 200 * GB)
    assert pipeline_ps() / shortest < 0.007
    assert pipeline_ps() / copy_ps(256 * smallest, 0, 16 * GB, 200 * GB) < 0.00003


def test_the_document_has_the_engine_of_every_link() -> None:
    document = (Path(__file__).parents[3] / "docs" / "explanation" / "cdma.md").read_text(encoding="utf-8")
    for row in report(TrainingMachine.load("titan-x")):
        cells = [
            f"`{row['link']}`",
            *(f"{row[key]:.3g}" for key in ("link_gb_per_s", "cap_gb_per_s", "bandwidth_aware_gb_per_s", "most_ratio")),
            *(f"{row['buffer_kb']:.0f}", f"{row['area_mm2']:.2f}", f"{row['scaled_area_mm2']:.2f}"),
            str(row["units_needed"]),
        ]
        assert f"| {' | '.join(cells)} |" in document
