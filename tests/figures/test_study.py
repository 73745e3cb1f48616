"""Figures of the Buddy Compression study: plotted from the store, missing results with --run, captions."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.figures import REGISTRY, ResultSource
from buddysim.papers.buddy.buddy_study import BuddyStudy, paper_names
from buddysim.papers.buddy.run_missing import comparison_requests
from buddysim.sweep.cached_results import SavedResults
from buddysim.sweep.store import Store
from buddysim.synthetic import make_trace
from buddysim.workloads.batch import MadeWorkload, Order
from tests.sweep.conftest import stable

ROOT = Path(__file__).parents[2]
FIGURES = [name for name, figure in REGISTRY.items() if getattr(figure, "STUDY", False)]
SIMULATED_FIGURES = ("fig3", "fig5-classes", "fig5-metadata", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11", "fig12")
#: Those whose module has a comparison or whose numbers a test below reads; slow tests plot the others, too.
QUICK_FIGURES = ("fig3", "fig5-metadata", "fig7", "fig8", "fig9", "fig11", "fig12")
FIGURE_CASES = [
    pytest.param(name, marks=() if name in QUICK_FIGURES else pytest.mark.slow) for name in SIMULATED_FIGURES
]
ONLY = "cg,sp,squeezenet"
needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="needs pip install 'buddysim[sweep]'"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with traces of three workloads, two inputs each, and a store with their figures' results."""
    study_folder = tmp_path_factory.mktemp("study")
    sizes = {"profile": "32 B:3, 128 B:1", "replay": "32 B:2, 64 B:1, 128 B:1"}
    for number, name in enumerate(ONLY.split(",")):
        for which, distribution in sizes.items():
            more = {"footprint": f"{64 * (number + 1)} KiB", "op": "copy", "sizes": distribution}
            make_trace("stream", study_folder / f"{name}-small-{which}.bin", more)
    for name in QUICK_FIGURES:
        run_figure(study_folder, name)
    return study_folder


@cache
def run_figure(folder: Path, name: str) -> Path:
    """Return the file of a figure whose results are simulated now."""
    figure_file = folder / f"{name}.svg"
    assert main(command(folder, name, "-o", str(figure_file), "--run", "--workers", "1")) == 0, name
    return figure_file


def command(folder: Path, name: str, *more: str) -> list[str]:
    options = ["--scale", "small", "--only", ONLY, "--workloads", str(folder), "--store", str(folder / "store")]
    return ["plot", name, *options, *more]


def source(folder: Path) -> ResultSource:
    columns = {"scale": "small", "only": ONLY, "workloads": str(folder)}
    return ResultSource(Store.at(folder / "store"), columns=columns)


def plotted(folder: Path, name: str) -> Figure:
    figure = REGISTRY.find(name)
    made: Figure = figure.draw(figure.data(source(folder)))
    return made


def test_the_study_is_fig3_to_fig13() -> None:
    assert FIGURES[:3] == ["fig3", "fig5-compressors", "fig5-classes"]
    assert {*SIMULATED_FIGURES, "fig5-compressors"} <= set(FIGURES)


@pytest.mark.parametrize("name", FIGURE_CASES)
def test_figure_is_a_column_wide_with_a_csv_file_of_its_numbers(name: str, folder: Path) -> None:
    figure_file = run_figure(folder, name).read_text()
    assert 'width="237.6pt"' in figure_file  # 3.3 in
    with (folder / f"{name}.csv").open(newline="") as file:
        heading, *rows = list(csv.reader(file))
    assert rows
    assert heading == list(REGISTRY.find(name).data(source(folder)).columns)


#: One figure of analyses, one of replays: a figure's own module has no part in where its results come from.
PLOTTED_AGAIN = ("fig8", "fig12")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in PLOTTED_AGAIN else pytest.mark.slow) for name in SIMULATED_FIGURES]
)
def test_without_run_nothing_is_simulated(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_figure(folder, name)
    before = {path: path.stat().st_mtime_ns for path in (folder / "store").rglob("*") if path.is_file()}
    assert main(command(folder, name, "-o", str(folder / "again.svg"))) == 0
    assert ", 0 simulated now" in " ".join(capsys.readouterr().out.split())
    assert {path: path.stat().st_mtime_ns for path in (folder / "store").rglob("*") if path.is_file()} == before
    assert (folder / "again.svg").read_bytes() == (folder / f"{name}.svg").read_bytes()


def test_bars_of_fig11_are_the_baseline_s_time_over_each(folder: Path) -> None:
    results = SavedResults(Store.at(folder / "store"))
    trace, other = (str(folder / f"cg-small-{which}.bin") for which in ("replay", "profile"))
    link = {"link.bandwidth": "50 GB/s"}
    buddy = results.result_of("replay", {"trace": trace, "profile_from": other, "scheme": "buddy", **link})
    ideal = results.result_of("replay", {"trace": trace, "scheme": "ideal", "link.bandwidth": "150 GB/s"})
    assert results.simulated == 0
    (axes,) = plotted(folder, "fig11").axes
    heights = {c.get_label(): [bar.get_height() for bar in c] for c in axes.containers}  # type: ignore[attr-defined]
    assert heights["50 GB/s"][0] == ideal["time_ps"] / buddy["time_ps"]
    assert heights["50 GB/s"][0] <= heights["200 GB/s"][0] <= heights["no limit"][0]
    one = [line for line in axes.lines if list(line.get_ydata()) == [1, 1]]
    assert one[0].get_linestyle() == "--"


def test_means_are_geometric_of_ratios_and_arithmetic_of_fractions(folder: Path) -> None:
    rows = REGISTRY.find("fig7").data(source(folder))
    cg, sp, mean = (rows.rows_with(workload=name, policy="final")[0] for name in ("cg", "sp", "HPC mean"))
    assert mean["ratio"] == pytest.approx((cg["ratio"] * sp["ratio"]) ** 0.5)
    assert mean["overflow_fraction"] == pytest.approx((cg["overflow_fraction"] + sp["overflow_fraction"]) / 2)
    assert (mean["paper_ratio"], cg["paper_ratio"]) == (None, 1.11)  # the paper's mean is of ten programs
    for name in ("fig7", "fig9", "fig11"):
        assert "Means of 2 of 10 HPC and 1 of 6 DL workloads." in plotted(folder, name).get_supxlabel()


def test_targets_are_those_of_the_other_input(folder: Path) -> None:
    """A quarter of the profiled entries overflow a sector: 4x is chosen; half of the replayed ones overflow it."""
    (row,) = REGISTRY.find("fig7").data(source(folder)).rows_with(workload="cg", policy="final")
    assert row["ratio"] == pytest.approx(4.0)
    assert row["overflow_fraction"] == pytest.approx(0.5, abs=0.05)
    assert row["same_input_ratio"] < 3


def test_missing_results_are_named(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--scale", "small", "--only", "cg,ep", "--workloads", str(folder), "--store", str(folder / "store")]
    assert main(["plot", "fig3", *options, "-o", str(tmp_path / "p.svg")]) == 0
    assert "Missing: 1 traces of ep" in caption_text(folder, "cg,ep")
    capsys.readouterr()
    assert main(["plot", "fig3", *options[:3], "ep", *options[4:], "-o", str(tmp_path / "p.svg")]) == 2
    error = capsys.readouterr().err
    assert "fig3: no result in" in error
    assert "plot fig3 --scale small --run makes them" in error


def caption_text(folder: Path, only: str) -> str:
    columns = {"scale": "small", "only": only, "workloads": str(folder)}
    figure = REGISTRY.find("fig3")
    made = figure.draw(figure.data(ResultSource(Store.at(folder / "store"), columns=columns)))
    return str(made.get_supxlabel())


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (["--only", "cgg"], "nearest: cg"),
        (["--scale", "smal"], "nearest: small"),
        (["--x", "a"], "--x: an option of plot sweep"),
    ],
)
def test_one_line_says_what_is_wrong(option: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "fig3", *option]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert len(error.splitlines()) == 1


def test_points_that_fail_are_named_after_the_others_ran(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sizes under another compressor need data values, which these traces lack."""
    assert main(command(folder, "fig5-compressors", "-o", str(tmp_path / "p.svg"), "--run", "--workers", "1")) == 2
    error = capsys.readouterr().err
    assert "points failed; the first: " in error
    assert "no data values" in error


def test_traces_that_cannot_be_made_do_not_hold_up_the_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Traces of programs have data values, which other compressors need; traces of networks have sizes only."""
    ordered = []

    def refused(orders: Sequence[Order]) -> Iterator[MadeWorkload]:
        ordered.extend(orders)
        raise BuddysimError("no space")
        yield

    monkeypatch.setattr("buddysim.papers.buddy.run_missing.make_all", refused)
    options = ["--scale", "small", "--workloads", str(folder), "--store", str(tmp_path / "store")]
    assert main(["plot", "fig3", *options, "--only", "cg,ep,vgg16", "--run", "--workers", "1"]) == 2
    assert "traces: no space" in capsys.readouterr().err
    assert {(one.name, one.contents_every) for one in ordered} == {("ep", 64), ("vgg16", 0)}
    assert main(["plot", "fig3", *options, "--only", "cg", "-o", str(tmp_path / "p.svg")]) == 0


def test_study_makes_the_additional_results_of_the_comparison(folder: Path) -> None:
    study = source(folder).buddy
    for ask in comparison_requests(study):
        ask()
        if "changes" in {point.settings.get("analysis") for point in study.missing.values()}:  # no figure draws it
            return
    pytest.fail("no request of the comparison is of what no figure draws")


def test_every_workload_has_its_name_in_the_paper() -> None:
    names = BuddyStudy(SavedResults()).names()
    assert len(names) == 16
    assert [paper_names()[name] for name in names[:2]] == ["351.palm", "352.ep"]
    with pytest.raises(BuddysimError, match="expected one of"):
        BuddyStudy(SavedResults(), only=("x",))


@needs_dask
@pytest.mark.slow
def test_workers_and_a_cluster_make_the_same_files_as_one_process(folder: Path, tmp_path: Path) -> None:
    """Files are bit-identical, for analyses with and without replays."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        runners = {"workers": ("--workers", "2"), "cluster": ("--scheduler", cluster.scheduler_address)}
        for runner, name in itertools.product(runners, ("fig7", "fig11")):
            store, options = ("--store", str(tmp_path / runner)), runners[runner]
            figure_file = tmp_path / f"{runner}-{name}.svg"
            assert main(command(folder, name, *store, "-o", str(figure_file), "--run", *options)) == 0
            assert figure_file.read_bytes() == (folder / f"{name}.svg").read_bytes()
            assert figure_file.with_suffix(".csv").read_bytes() == (folder / f"{name}.csv").read_bytes()
            made, one = Store.at(tmp_path / runner), Store.at(folder / "store")
            assert made.all_keys()
            assert all(stable(made.get(result)) == stable(one.get(result)) for result in made.all_keys())


@pytest.mark.slow
def test_plot_study_draws_all_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = "sp,squeezenet"  # a program of managed memory, and a network
    for which in ("profile", "replay"):
        for name in only.split(","):
            shutil.copy(ROOT / "traces" / "bitonic-sort.bin", tmp_path / f"{name}-small-{which}.bin")
    figures_folder = tmp_path / "figures"
    options = ["--only", only, "--run", "--workers", "1", "-o", str(figures_folder)]
    assert main(command(tmp_path, "study", *options)) == 0
    names = {path.stem for path in figures_folder.glob("*.pdf")}
    assert names == set(FIGURES)
    assert "left out" not in capsys.readouterr().err
