"""The papers' figures: every one is drawn, from saved results, the same bytes twice."""

from __future__ import annotations

import json

import pytest

from buddysim.cli import main
from buddysim.cli.plot import known_figures
from buddysim.figures.paper import stated
from buddysim.figures.runs import Runs, file_name


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Where results are saved, once for all figures."""
    return tmp_path_factory.mktemp("training")


def test_every_figure_that_was_asked_for_is_there():
    vdnn = [f"vdnn-fig{number}" for number in (1, 4, 5, 6, 11, 12, 13, 14, 15)]
    cdma = [f"cdma-fig{number}" for number in (3, 4, 5, 6, 7, 11, 12, 13)]
    assert known_figures() == vdnn + cdma


@pytest.mark.parametrize("name", known_figures())
def test_figures_are_drawn(name, saved, tmp_path, capsys):
    picture = tmp_path / f"{name}.png"
    assert main(["plot", name, "-o", str(picture), "--results", str(saved)]) == 0
    assert 15_000 < picture.stat().st_size < 400_000
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]
    assert str(picture) in capsys.readouterr().out


def test_the_same_bytes_twice_and_nothing_simulated_the_second_time(saved, tmp_path, capsys):
    for end in ("svg", "png"):
        for name in ("a", "b"):
            path = tmp_path / f"{name}.{end}"
            assert main(["plot", "vdnn-fig12", "-o", str(path), "--results", str(saved)]) == 0
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()
    assert capsys.readouterr().out.splitlines()[-1].endswith(", 0 simulated now")


def test_what_is_saved_is_what_train_writes(tmp_path):
    runs = Runs(tmp_path)
    result = runs.one("alexnet-cifar10", 4, "vdnn-all-m", link="pcie4")
    path = tmp_path / file_name("alexnet-cifar10", 4, "titan-x", {"link": "pcie4"})
    own = tmp_path / "own.json"
    arguments = ["alexnet-cifar10", "--batch", "4", "--scheme", "vdnn-all-m", "--link", "pcie4", "--json", str(own)]
    assert main(["train", *arguments]) == 0
    assert json.loads(path.read_text()) == json.loads(own.read_text()) == {"vdnn-all-m": result}


def test_results_of_another_simulator_are_not_used(tmp_path):
    runs = Runs(tmp_path)
    runs.one("alexnet-cifar10", 4, "oracle")
    (path,) = tmp_path.iterdir()
    saved = json.loads(path.read_text())
    saved["oracle"]["provenance"]["simulator_checksum"] = "another"
    path.write_text(json.dumps(saved))
    again = Runs(tmp_path)
    again.one("alexnet-cifar10", 4, "oracle")
    assert again.simulated == 1
    assert Runs(tmp_path).of("alexnet-cifar10", 4, ["oracle"]) == again.of("alexnet-cifar10", 4, ["oracle"])


@pytest.mark.parametrize("content", ["", "[]", '{"oracle": 3}'])
def test_a_damaged_result_is_refused_by_name(tmp_path, capsys, content):
    name = file_name("vgg19", 256, "titan-x", {})
    (tmp_path / name).write_text(content)
    assert main(["plot", "vdnn-fig5", "-o", str(tmp_path / "p.png"), "--results", str(tmp_path)]) == 2
    assert name in capsys.readouterr().err
    assert not (tmp_path / "p.png").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["vdnn-fig111"], "vdnn-fig11"),
        (["vdnn-fig5", "-o", "p.gif"], "expected a name that ends in"),
        (["vdnn-fig5", "-o", "no/such/folder/p.png"], "there is no folder"),
        (["vdnn-fig5", "r.json"], "takes no result file"),
        (["overview"], "expected the file"),
    ],
)
def test_one_line_says_what_is_wrong(arguments, said, capsys):
    assert main(["plot", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_the_list_names_every_figure(capsys):
    assert main(["plot"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == known_figures()


def test_every_stated_number_has_a_value():
    for id, number in stated().items():
        assert number["value"] not in ("", []), id
