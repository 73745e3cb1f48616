"""What every registered figure keeps to: it is listed, and drawn from saved results, the same bytes twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.figures import REGISTRY, Source, plot, save

WITHOUT_FILE = [name for name, figure in REGISTRY.items() if not hasattr(figure, "FILE")]
WITH_FILE = [name for name in REGISTRY.names() if name not in WITHOUT_FILE]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where results are saved, once for all figures."""
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


@pytest.mark.parametrize("name", WITHOUT_FILE)
def test_a_figure_is_drawn(name: str, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / f"{name}.png"
    assert main(["plot", name, "-o", str(picture), "--store", str(results)]) == 0
    assert 15_000 < picture.stat().st_size < 400_000
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]
    assert str(picture) in capsys.readouterr().out


@pytest.mark.slow
def test_every_draws_all_that_need_no_file(results: Path, tmp_path: Path) -> None:
    assert main(["plot", "every", "-o", str(tmp_path / "pictures"), "--store", str(results)]) == 0
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {f"{name}.png" for name in WITHOUT_FILE}


@pytest.mark.parametrize("name", WITH_FILE)
def test_a_figure_of_a_file_asks_for_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "p.png"
    assert main(["plot", name, "-o", str(picture)]) == 2
    file, description = REGISTRY.find(name).FILE
    assert f"plot {name}: expected {description}: plot {name} {file}" in capsys.readouterr().err
    with pytest.raises(BuddysimError, match="file"):
        plot(name, picture, Source())
    assert not picture.exists()


def test_the_same_bytes_twice_and_nothing_simulated_the_second_time(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for end in ("svg", "png"):
        for name in ("a", "b"):
            path = tmp_path / f"{name}.{end}"
            assert main(["plot", "vdnn-fig12", "-o", str(path), "--store", str(results)]) == 0
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()
    assert capsys.readouterr().out.splitlines()[-1].endswith(", 0 simulated now")


def test_save_writes_whole_files_of_three_kinds(tmp_path: Path) -> None:
    figure = Figure()
    figure.subplots().plot([1, 2], [3, 4])
    for suffix, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        save(figure, tmp_path / f"a{suffix}")
        save(figure, str(tmp_path / f"b{suffix}"))
        written = (tmp_path / f"a{suffix}").read_bytes()
        assert written.startswith(start)
        assert written == (tmp_path / f"b{suffix}").read_bytes()
    with pytest.raises(BuddysimError, match=r"expected a name that ends in \.png, \.svg, \.pdf"):
        save(figure, tmp_path / "a.gif")


def test_a_damaged_result_is_simulated_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = ["plot", "vdnn-fig5", "-o", str(tmp_path / "p.png"), "--store", str(tmp_path / "store")]
    assert main(draw) == 0
    for path in (tmp_path / "store" / "results").glob("*/*"):
        path.write_bytes(path.read_bytes()[:-1])
    assert main(draw) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(", 1 simulated now")
    assert main(draw) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(", 0 simulated now")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["vdnn-fig111"], "vdnn-fig11"),
        (["vdnn-fig5", "-o", "p.gif"], "expected a name that ends in"),
        (["vdnn-fig5", "-o", "no/such/folder/p.png"], "there is no folder"),
        (["vdnn-fig5", "r.json"], "takes no result file"),
        (["every", "r.json"], "takes no file"),
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
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(REGISTRY.names())
    for name, line in zip(REGISTRY.names(), lines, strict=True):
        assert REGISTRY.find(name).TITLE in line
        assert name not in WITH_FILE or REGISTRY.find(name).FILE[0] in line
