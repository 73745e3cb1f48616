"""The screens of `run`, `train` and `profile`: width, order, caveats, at every width, in a pipe and in a notebook."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

import buddysim
from buddysim.cli import main
from buddysim.report.caveats import MAX_CAVEATS
from buddysim.training import simulate

TRACES = Path(__file__).parents[2] / "traces"
CAPTURED, SYNTHETIC = str(TRACES / "jacobi2d.bin"), str(TRACES / "lud256.bin")
WIDTHS = (80, 120, 200, None)  # None: a pipe

#: Commands, and what the answer looks like.
COMMANDS = {
    "run": (("run", CAPTURED), r"speedup over ideal +[\d.]+x"),
    "run-one-scheme": (("run", CAPTURED, "--scheme", "ideal"), r"simulated time +[\d.]+ us"),
    "run-synthetic": (("run", SYNTHETIC), r"speedup over ideal +[\d.]+x - [\d.]+x"),
    "run-queueing": (("run", CAPTURED, "--queueing", "--no-sensitivity"), r"speedup over ideal +[\d.]+x"),
    "run-four-schemes": (("run", CAPTURED, "--equal-capacity", "--no-sensitivity"), r"speedup over ideal +[\d.]+x"),
    "run-five-schemes": (
        ("run", CAPTURED, "--scheme", "buddy,unified-memory,pinned-host,bandwidth-compression,ideal"),
        r"buddy +[\d.]+x",
    ),
    "train": (("train", "alexnet", "--batch", "512"), r"oracle +(- +)?100 %"),
    "train-all": (("train", "alexnet", "--batch", "512", "--scheme", "all"), r"oracle +(- +)?100 %"),
    "train-gist": (("train", "alexnet", "--scheme", "gist-fp16,gist-lossless,cswap"), r"gist-lossless +yes"),
    "train-max-batch": (("train", "alexnet", "--max-batch", "--scheme", "vdnn-dyn"), r"vdnn-dyn +[\d,]+ +yes"),
    "profile": (("profile", CAPTURED), r"compression ratio [\d.]+x"),
    "profile-synthetic": (("profile", SYNTHETIC), r"compression ratio [\d.]+x - [\d.]+x"),
}


def check_screen(shown: str, width: int, answer: str) -> None:
    """Check the width, the position of the answer, the number of caveats, and rows without content."""
    lines = shown.splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert re.search(answer, "\n".join(lines[:12])), "the answer is not in the first twelve lines"
    assert 0 <= sum(line.startswith("- ") for line in lines) <= MAX_CAVEATS
    assert [line for line in lines if re.fullmatch(r" *\S.*?  +-( +-)*", line) and line.split("  ")[0].strip()] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_screen_fits_every_width(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, answer = COMMANDS[name]
    seen = {}
    for width in WIDTHS:
        monkeypatch.delenv("COLUMNS", raising=False)
        if width is not None:
            monkeypatch.setenv("COLUMNS", str(width))
        assert main(list(command)) == 0
        seen[width] = capsys.readouterr().out
        check_screen(seen[width], width or 80, answer)
    timing = re.compile(r"simulated in.*(\n  .*)?")
    assert timing.sub("", seen[80]) == timing.sub("", seen[None])


def paragraphs(html: str) -> str:
    """A notebook's display as text: a line for each paragraph and each row, its cells apart."""
    cells = re.sub(r"</t[dh]>", "  ", html)
    lines = re.sub(r"</tr>|</p>", "\n", cells)
    return unescape(re.sub(r"<[^>]*>", "", lines))


@pytest.mark.parametrize("kind", ["run", "train", "profile"])
def test_notebook_shows_the_answer_first_and_few_caveats(kind: str) -> None:
    result = {
        "run": lambda: buddysim.simulate_schemes(CAPTURED),
        "train": lambda: simulate("alexnet", 64, "titan-x", "vdnn-dyn"),
        "profile": lambda: buddysim.profile(CAPTURED),
    }[kind]()
    answers = {
        "run": r"speedup over ideal +[\d.]+x",
        "train": r"vdnn-dyn +yes",
        "profile": r"compression ratio [\d.]+x",
    }
    check_screen(paragraphs(result._repr_html_()), 200, answers[kind])


def test_a_row_without_content_is_found() -> None:
    with pytest.raises(AssertionError):
        check_screen("answer\nmetadata   -      -\n", 80, "answer")
    check_screen("answer\ntotal   1 MiB      -\n", 80, "answer")
