"""``python -m buddysim fit``: screen, files, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_train_config import run
from tests.training.fitting.small_model import LARGER, TWO_BLOCKS_BUDGET


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LARGER), encoding="utf-8")
    return str(path)


@pytest.fixture
def two_blocks(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LARGER, "num_hidden_layers": 2}), encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_screen_and_files(two_blocks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, answer = str(tmp_path / "plan.toml"), str(tmp_path / "answer.json")
    code, out, err = run(
        capsys, "fit", two_blocks, "--machine", "h100-sxm", "--batch", "8", "--sequence", "1024", "--recipe", "bf16",
        "--memory-budget", f"{TWO_BLOCKS_BUDGET}B", "-o", plan, "--json", answer, "--tries", "1",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "fits: GPU memory" in out
    assert max(map(len, out.splitlines())) <= 80
    written = json.loads(Path(answer).read_text(encoding="utf-8"))
    assert written["bounds.time_ms"] <= written["time_ms"]
    assert written["bounds.memory_bytes"] <= written["used_bytes"]
    assert written["memory.peak_bytes"] < TWO_BLOCKS_BUDGET
    assert [row["choice"] for row in written["plan"]]
    code, out, _ = run(
        capsys, "train", two_blocks, "--machine", "h100-sxm", "--batch", "8", "--sequence", "1024", "--recipe", "bf16",
        "--memory-budget", f"{TWO_BLOCKS_BUDGET}B", "--scheme", "plan", "--plan", plan, "--json", "-",
    )  # fmt: skip
    again = json.loads(out)["plan"]
    assert (again["time_ms"], again["memory.peak_bytes"]) == (written["time_ms"], written["memory.peak_bytes"])


@pytest.mark.slow
def test_another_network_is_planned_by_layers(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "fit", "alexnet", "--machine", "titan-x", "--memory-budget", "830MB", "--tries", "2")
    assert (code, err) == (0, "")
    assert "plan of 12 groups" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--memory-budget", "much"), "--memory-budget: "),
        (("--memory-budget", "0B"), "expected more than nothing"),
        (("--slowdown", "fast"), "--slowdown: 'fast': expected per cent, for example 10%"),
        (("--slowdown", "-3"), "slowdown -0.03: expected 0 to 1000"),
        (("--allow", "gist"), "allow 'gist': expected some of compress-16"),
        (("--tries", "-1"), "tries -1: expected 0 to"),
        (("--memory-budget", "100MiB"), "does not fit: "),
        (("--batch", "some"), "--batch 'some': expected a number from 1 on, or max"),
        (("--maximize", "joy"), "maximize 'joy': expected tokens"),
        (("--batch", "max", "--maximize", "tokens"), "expected one of them"),
        (("-o", "plan.txt"), "expected a name that ends in .toml or .py"),
        # Refused before the question's answer is begun, which says that joy can't be maximized.
        (("-o", "plan.py", "--maximize", "joy"), "isn't a model's configuration: expected a plan as .toml"),
    ],
)
def test_one_line_says_what_is_wrong(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "fit", "alexnet", "--machine", "titan-x", *arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.slow
def test_machines_and_links_are_rows_of_a_table(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--batch", "8", "--sequence", "1024", "--recipe", "bf16", "--memory-budget", "1000MiB", "--tries", "0")
    code, out, err = run(capsys, "fit", model, "--machine", "h100-sxm,gh200", *options)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if line.startswith(("h100", "gh200"))] == ["h100-sxm", "gh200"]
    figure, answers = str(tmp_path / "links.svg"), str(tmp_path / "links.json")
    code, out, err = run(
        capsys, "fit", model, "--machine", "h100-sxm", "--link-sweep", "--figure", figure, "--json", answers, *options
    )
    assert (code, err) == (0, "")
    assert "copies of saved tensors pay" in out
    written = json.loads(Path(answers).read_text(encoding="utf-8"))
    rows = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0] in written]
    rates = [float(row[2]) for row in rows]
    assert rates == sorted(rates)
    assert len(rates) > 2
    assert Path(figure).stat().st_size > 10_000


@pytest.mark.slow
def test_the_figure_shows_memory_and_front(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "fit.png"
    code, _, err = run(
        capsys, "fit", model, "--machine", "h100-sxm", "--batch", "8", "--sequence", "1024", "--tries", "0",
        "--recipe", "bf16", "--memory-budget", "1000MiB", "--figure", str(figure),
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert figure.stat().st_size > 10_000
