"""Results as data frames and in notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.synthetic import make_trace
from buddysim.training import simulate

pytest.importorskip("pandas", reason="pandas isn't installed: pip install 'buddysim[data]'")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "t.bin"
    make_trace("stream", path, {"footprint": "256 KiB", "op": "copy", "laps": "2", "sizes": "32 B:3, 128 B:1"})
    return path


def test_a_comparison_has_a_row_for_each_scheme(trace: Path) -> None:
    results = buddysim.simulate_schemes(trace, schemes=("buddy", "ideal"))
    frame = results.to_dataframe()
    assert list(frame.index) == ["buddy", "ideal"]
    for scheme, result in results.items():
        assert frame.loc[scheme, "time_ps"] == result.counters["time_ps"]
        assert frame.loc[scheme, "slowdown.ratio"] == result.slowdown["ratio"]
    kernels = results.to_dataframe("kernel")
    assert len(kernels) == 2 * len(results["buddy"].per_kernel)
    assert kernels.loc["buddy", "time_ps"].tolist() == [row["time_ps"] for row in results["buddy"].per_kernel]
    with pytest.raises(BuddysimError, match="expected one of run, kernel, allocation"):
        results.to_dataframe("layer")


def test_one_result_and_a_training_too(trace: Path) -> None:
    result = buddysim.simulate(trace)
    assert result.to_dataframe().loc[0, "cycles"] == result.counters["cycles"]
    trained = simulate("alexnet", 8, "titan-x", "vdnn-all-m")
    layers = trained.to_dataframe("layer")
    assert layers["forward_ms"].sum() == pytest.approx(sum(row["forward_ms"] for row in trained.per_layer))


def test_a_profile_has_a_row_for_each_allocation(trace: Path) -> None:
    with buddysim.open_trace(trace) as opened:
        profile = buddysim.profile(opened)
        frame = profile.to_dataframe()
        assert list(frame["target"]) == [row.target.name for row in profile.rows]
        assert frame["sectors_needed.1"].tolist() == [row.histogram[2] for row in profile.rows]
        assert f"{profile.ratio:.2f}" in profile._repr_html_()
    assert "buddy accesses" in repr(profile)


def test_a_notebook_shows_what_the_command_prints(trace: Path) -> None:
    results = buddysim.simulate_schemes(trace)
    for html in (results._repr_html_(), results["buddy"]._repr_html_()):
        assert "<table>" in html
        assert "compression ratio" in html
    assert "baseline" in results._repr_html_()
    assert "vdnn-all-m" in simulate("alexnet", 8, "titan-x", "vdnn-all-m")._repr_html_()
