"""Rules of every registered figure: it is listed, plotted from stored results, and its file is reproducible."""

from __future__ import annotations

import itertools
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.cli.plot import GROUPS, is_in_group
from buddysim.figures import REGISTRY, ResultSource, memory, plot, save_figure, vdnn_fig11
from buddysim.plotting.figure_format import FigureFormat
from buddysim.sweep.store import Store
from buddysim.synthetic import make_trace
from buddysim.training import simulate

OF_STUDY = [name for name, figure in REGISTRY.items() if getattr(figure, "STUDY", False)]
WITH_FILE = [name for name, figure in REGISTRY.items() if hasattr(figure, "FILE")]
NEEDS_FILE = [name for name in WITH_FILE if not hasattr(REGISTRY.find(name), "DEFAULT_FILE")]
WITHOUT_FILE = [name for name in REGISTRY.names() if name not in (*WITH_FILE, *OF_STUDY)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the store of results, made once for all figures."""
    return tmp_path_factory.mktemp("training")


def test_there_are_figures_of_both_kinds() -> None:
    assert WITH_FILE
    assert WITHOUT_FILE


@pytest.mark.parametrize("name", REGISTRY.names())
def test_a_figure_says_what_it_shows_in_a_line(name: str) -> None:
    figure = REGISTRY.find(name)
    assert figure.TITLE
    assert "\n" not in figure.TITLE
    assert figure.__doc__
    if name in WITH_FILE:
        file, description = figure.FILE
        assert file.isupper() or file.partition(".")[0].isupper()
        assert description


#: Slow figures, which `plot papers` draws: they search networks of some thousand layers, flip every decision, search
#: for launches, or compress contents of several networks. `test_trade_off.py` draws its figure of a small network.
SLOW = ("gist-fig10", "gist-fig16", *(f"cswap-fig{number}" for number in (5, 6, 7, 10, 11, 12)))
SLOW += ("cdma-fig3", "cdma-fig5", "cdma-fig13", "vdnn-fig11", "cswap-host-rate", "trade-off")


#: Figures whose files are written: of a network, of none, and of codecs. Slow tests write all.
WRITTEN = ("vdnn-fig13", "gist-fig12", "cswap-fig9")


@cache
def data_of(name: str, results: Path) -> Any:
    """Return the data of a figure, which several tests plot."""
    return REGISTRY.find(name).data(ResultSource(Store.at(str(results))))


def plotted(name: str, results: Path, look: FigureFormat | None = None) -> Figure:
    return (look or FigureFormat()).apply(REGISTRY.find(name).draw(data_of(name, results)))


@pytest.mark.parametrize("name", [name for name in WITHOUT_FILE if name not in SLOW])
def test_figure_shows_its_data(name: str, results: Path) -> None:
    figure = plotted(name, results)
    assert figure.axes
    assert all(axes.has_data() for axes in figure.axes)


@pytest.mark.parametrize("name", WRITTEN)
def test_figure_is_written(name: str, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{name}.png"
    assert main(["plot", name, "-o", str(path), "--store", str(results)]) == 0
    assert 15_000 < path.stat().st_size < 400_000
    assert [path.name for path in tmp_path.iterdir()] == [path.name]
    assert str(path) in capsys.readouterr().out


@pytest.mark.slow
def test_plot_papers_draws_the_figures_of_papers_that_need_no_file(results: Path, tmp_path: Path) -> None:
    assert main(["plot", "papers", "-o", str(tmp_path / "figures"), "--store", str(results)]) == 0
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "figures").iterdir()}
    assert sizes.keys() == {f"{name}{suffix}" for name in WITHOUT_FILE for suffix in (".pdf", ".svg")}
    assert all(8_000 < size < 1_000_000 for size in sizes.values()), sizes


def test_plot_all_draws_the_figures_of_both_groups() -> None:
    groups = {group: [name for name, figure in REGISTRY.items() if is_in_group(figure, group)] for group in GROUPS}
    assert groups["papers"] == WITHOUT_FILE
    assert "fig11" in groups["study"]
    assert sorted(groups["all"]) == sorted(groups["papers"] + groups["study"])


@pytest.mark.parametrize("name", NEEDS_FILE)
def test_a_figure_of_a_file_asks_for_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.png"
    assert main(["plot", name, "-o", str(path)]) == 2
    file, description = REGISTRY.find(name).FILE
    assert f"plot {name}: no file: expected {description}: plot {name} {file}" in capsys.readouterr().err
    with pytest.raises(BuddysimError, match="file"):
        plot(name, path, ResultSource())
    assert not path.exists()


def test_the_same_bytes_twice_and_nothing_simulated_the_second_time(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for end in ("svg", "png"):
        for name in ("a", "b"):
            path = tmp_path / f"{name}.{end}"
            assert main(["plot", "vdnn-fig4", "-o", str(path), "--store", str(results)]) == 0
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()
    assert " ".join(capsys.readouterr().out.split()).endswith(", 0 simulated now")


def test_save_writes_whole_files_of_three_kinds(tmp_path: Path) -> None:
    figure = Figure()
    figure.subplots().plot([1, 2], [3, 4])
    for suffix, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        save_figure(figure, tmp_path / f"a{suffix}")
        save_figure(figure, str(tmp_path / f"b{suffix}"))
        written = (tmp_path / f"a{suffix}").read_bytes()
        assert written.startswith(start)
        assert written == (tmp_path / f"b{suffix}").read_bytes()
    with pytest.raises(BuddysimError, match=r"expected a name that ends in \.png, \.svg, \.pdf"):
        save_figure(figure, tmp_path / "a.gif")


def test_a_damaged_result_is_simulated_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = ["plot", "vdnn-fig5", "-o", str(tmp_path / "p.png"), "--store", str(tmp_path / "store")]
    REGISTRY.find("vdnn-fig5").data(ResultSource(Store.at(str(tmp_path / "store"))))
    for path in (tmp_path / "store" / "results").glob("*/*"):
        path.write_bytes(path.read_bytes()[:-1])
    assert main(draw) == 0
    assert " ".join(capsys.readouterr().out.split()).endswith(", 1 simulated now")
    assert main(draw) == 0
    assert " ".join(capsys.readouterr().out.split()).endswith(", 0 simulated now")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["vdnn-fig111"], "vdnn-fig11"),
        (["vdnn-fig5", "-o", "p.gif"], "expected a name that ends in"),
        (["vdnn-fig5", "-o", "no/such/folder/p.png"], "there is no folder"),
        (["vdnn-fig5", "r.json"], "unexpected file: expected results in --store"),
        (["papers", "r.json"], "unexpected file"),
        (["overview"], "expected the file"),
        (["overview", "no-such.json"], "no-such.json"),
    ],
)
def test_one_line_says_what_is_wrong(
    arguments: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plot", *arguments]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert len(error.splitlines()) == 1


def test_the_list_names_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot"]) == 0
    entries: list[str] = []
    for line in capsys.readouterr().out.splitlines():  # a title of several lines goes on in the second column
        if not line or line.endswith(" description"):
            continue
        entries += [line] if line[0] != " " else []
        entries[-1] = " ".join([*entries[-1].split(), *(line.split() if line[0] == " " else [])])
    by_name = {entry.split()[0]: entry for entry in entries}
    assert by_name.keys() == set(REGISTRY.names())
    assert len(by_name) == len(entries)
    for name, entry in by_name.items():
        assert REGISTRY.find(name).TITLE in entry
        assert name not in WITH_FILE or REGISTRY.find(name).FILE[0] in entry


def test_a_figure_fits_a_papers_column(results: Path, tmp_path: Path) -> None:
    """The file has the requested width and font size; without a title it has none."""
    plain, fitted = tmp_path / "plain.svg", tmp_path / "fitted.svg"
    assert main(["plot", "gist-fig12", "-o", str(plain), "--store", str(results)]) == 0
    options = ("--width", "84mm", "--font", "7", "--no-title", "--store", str(results))
    assert main(["plot", "gist-fig12", "-o", str(fitted), *options]) == 0
    title = REGISTRY.find("gist-fig12").TITLE.partition(":")[0]
    assert title in plain.read_text()
    assert title not in fitted.read_text()
    width = re.search(r'<svg[^>]* width="([\d.]+)pt"', fitted.read_text())
    assert width
    assert float(width[1]) == pytest.approx(84 / 25.4 * 72, rel=0.01)
    assert "7px" in fitted.read_text()


@pytest.mark.parametrize(("option", "value"), [("--width", "3"), ("--width", "0in"), ("--font", "x"), ("--dpi", "0")])
def test_a_look_that_is_none_is_refused(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plot", "vdnn-fig12", option, value])
    assert f"argument {option}" in capsys.readouterr().err


def test_without_a_file_name_it_is_written_for_print_and_for_the_screen(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plot", "gist-fig12", "--store", str(results)]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"gist-fig12.pdf", "gist-fig12.svg"}


def test_stalls_of_a_training(tmp_path: Path) -> None:
    saved, path = tmp_path / "r.json", tmp_path / "stalls.svg"
    assert main(["train", "alexnet", "--batch", "128", "--scheme", "vdnn-all-m,oracle", "--json", str(saved)]) == 0
    assert main(["plot", "stalls", str(saved), "-o", str(path)]) == 0
    for text in ("vdnn-all-m: ", "oracle: ", "conv1", "stall"):
        assert text in path.read_text()
    assert main(["plot", "overview", str(saved), "-o", str(path)]) == 2


def test_plot_draws_result_objects(tmp_path: Path) -> None:
    make_trace("stream", tmp_path / "t.bin", {"footprint": "256 KiB", "sizes": "32 B"})
    results = buddysim.simulate_schemes(tmp_path / "t.bin")
    assert len(buddysim.plot(results).axes) == 2
    trained = simulate("alexnet", 32, "titan-x", "vdnn-all-m")
    assert len(buddysim.plot(trained).axes) == 1
    slow, fast = buddysim.plot({"a": trained, "b": simulate("alexnet", 32, "titan-x", "oracle")}).axes
    assert slow.get_ylim() == fast.get_ylim()  # a bar of one scheme is as long as the same time of another
    for wrong in ({}, {"a": 3}, {"a": trained, "buddy": results["buddy"]}):
        with pytest.raises(BuddysimError, match="expected results of one engine"):
            buddysim.plot(wrong)


def test_one_replay_result_is_plotted_without_the_baseline(tmp_path: Path) -> None:
    """README's example has a result of `buddy` alone: the figure shows its time, not a slowdown."""
    make_trace("stream", tmp_path / "t.bin", {"footprint": "256 KiB", "sizes": "32 B"})
    machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"link.bandwidth": "50 GB/s"})
    result = buddysim.simulate(tmp_path / "t.bin", machine=machine, scheme="buddy")
    times, _ = buddysim.plot(result).axes
    assert times.get_xlabel() == "simulated time, us"
    (bar,) = times.patches
    assert bar.get_width() == pytest.approx(result.counters["time_ps"] / 10**6)  # type: ignore[attr-defined]
    alone = {
        "buddy": result,
        "bandwidth-compression": buddysim.simulate(tmp_path / "t.bin", scheme="bandwidth-compression"),
    }
    assert len(buddysim.plot(alone).axes[0].patches) == 2
    assert (
        buddysim.plot(buddysim.simulate_schemes(tmp_path / "t.bin"))
        .axes[0]
        .get_xlabel()
        .startswith("slowdown vs ideal")
    )


def test_no_result_is_an_error_of_one_line() -> None:
    with pytest.raises(BuddysimError, match="int: not a result: expected results of one engine"):
        buddysim.plot(3)  # type: ignore[arg-type]


def test_only_networks_that_do_not_fit_have_a_star(results: Path) -> None:
    """Panels of one column have common labels; panels of different networks have separate ones."""
    rows = data_of("vdnn-fig11", results)
    figure = plotted("vdnn-fig11", results)
    networks = list(dict.fromkeys(row["network"] for row in rows))
    for network, panel in zip(networks, figure.axes[len(networks) :], strict=True):
        fits = {row["scheme"]: row["fits"] for row in rows if row["network"] == network}
        starred = [label.get_text().endswith("*") for label in panel.get_xticklabels()]
        assert starred == [not each for each in fits.values()]


def test_memory_that_is_saved_is_a_part_of_the_baselines(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vdnn_fig11, "SIX", vdnn_fig11.SIX[:1])
    rows = vdnn_fig11.data(ResultSource(Store.at(str(results))))
    assert all(0 <= row["saved_percent"] < 100 for row in rows)
    assert {row["saved_percent"] for row in rows if row["scheme"] == "baseline-p"} == {0.0}


def test_captions_say_what_of_the_paper_could_not_be_read(results: Path) -> None:
    """Captions state for which bars the paper reports numbers, or that it reports none."""
    bars = plotted("vdnn-fig15", results)
    assert bars.get_supxlabel().startswith("Red marks: 2 of these 10 bars, whose values the paper's text reports;")
    averages = plotted("vdnn-fig11", results).get_supxlabel()
    assert averages.count("Red marks: averages of the six networks") == 1
    lines = plotted("vdnn-fig13", results).get_supxlabel()
    assert lines.startswith("Red lines: values that the paper's text reports for all")
    marked = plotted("vdnn-fig14", results).get_supxlabel()
    assert marked.startswith("Red marks: 2 of these 42 bars")
    assert "\n" not in marked
    assert "Red marks: 3 of these 10 bars" in plotted("vdnn-fig1", results).get_supxlabel()
    assert not plotted("vdnn-fig5", results).get_supxlabel()  # the paper's numbers aren't in it
    assert not plotted("vdnn-fig15", results, FigureFormat(title=False)).get_supxlabel()


def test_memory_above_the_papers_is_explained(results: Path) -> None:
    figure = plotted("vdnn-fig15", results)
    assert "where the paper reports 4.2 for VGG-116 to VGG-416" in figure.get_supxlabel()
    assert "VGG-16 (32) fits the GPU, so dyn offloads nothing of it" in figure.get_supxlabel()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vdnn-fig12", "vdnn-fig15"])
@pytest.mark.parametrize("title", [True, False])
def test_texts_of_a_narrow_figure_fit(name: str, title: bool, results: Path) -> None:
    figure = plotted(name, results, FigureFormat(width_in=3.3, font_pt=8, title=title))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.bbox.width > 0.6 * figure.bbox.width
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(one.x1 <= other.x0 for one, other in itertools.pairwise(boxes))
    for box in (axes.get_legend().get_window_extent(), *([figure._suptitle.get_window_extent()] if title else [])):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def test_memory_over_time_of_a_timeline(tmp_path: Path) -> None:
    saved, path = tmp_path / "t.json", tmp_path / "memory.svg"
    schemes = "eager,activation-checkpointing"
    assert main(["train", "vit-b16", "--batch", "1", "--scheme", schemes, "--timeline", str(saved)]) == 0
    assert main(["plot", "memory", str(saved), "-o", str(path)]) == 0
    plotted = memory.data(ResultSource(file=saved))
    assert [one.title.partition(":")[0] for one in plotted] == schemes.split(",")
    for one in plotted:
        totals = [sum(amounts) for amounts in zip(*one.bytes_by_kind.values(), strict=True)]
        assert max(totals) == one.peak_bytes
        assert one.times_ms[totals.index(max(totals))] == one.peak_ms
        assert one.end_ms >= one.times_ms[-1]
    for text in ("weights", "feature maps", "GPU memory, GiB"):
        assert text in path.read_text()
    assert main(["plot", "stalls", str(saved), "-o", str(path)]) == 2
