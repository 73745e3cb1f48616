"""Time against memory: every scheme is plotted, and no scheme dominates one on the front."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.figures import ResultSource, save_figure, trade_off
from buddysim.training import schemes


def test_pareto_front_is_not_dominated(tmp_path: Path) -> None:
    plotted = trade_off.data(ResultSource(columns={"network": "alexnet-cifar10", "batch": "32"}))
    assert {row["scheme"] for row in plotted.rows} == set(schemes.runnable_schemes()) - {"oracle"}
    front = [row for row in plotted.rows if row["on_the_front"]]
    assert front
    for row in plotted.rows:
        better = [
            other
            for other in plotted.rows
            if other["fits"] and other["peak_gib"] <= row["peak_gib"] and other["time_ms"] <= row["time_ms"]
            and (other["peak_gib"], other["time_ms"]) != (row["peak_gib"], row["time_ms"])
        ]  # fmt: skip
        assert row["on_the_front"] == (row["fits"] and not better)
    save_figure(trade_off.draw(plotted), tmp_path / "p.png")
    assert 15_000 < (tmp_path / "p.png").stat().st_size < 400_000


def test_bad_options() -> None:
    for batch in ("0", "x", "9999999999"):
        with pytest.raises(BuddysimError, match=f"--batch '{batch}': expected an integer from 1 to "):
            trade_off.data(ResultSource(columns={"batch": batch}))
    with pytest.raises(BuddysimError, match="vgg61"):
        trade_off.data(ResultSource(columns={"network": "vgg61"}))
