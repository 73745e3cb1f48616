"""The screens of `run`, `train` and `profile`: width, order, caveats, at every width, in a pipe and in a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from pathlib import Path

import pytest

import buddysim
from buddysim.cli import main
from buddysim.report import screen
from buddysim.report.caveats import MAX_CAVEATS
from buddysim.report.screen import Part
from buddysim.training import simulate

TRACES = Path(__file__).parents[2] / "traces"
CAPTURED, SYNTHETIC = str(TRACES / "jacobi2d.bin"), str(TRACES / "lud256.bin")
WIDTHS = (80, 120, 200)
FEW = ("--kernels", "0:1")  # where every scheme is replayed with latencies changed, too

#: Commands, and what the answer looks like.
COMMANDS = {
    "run": (("run", CAPTURED, *FEW), r"speedup over ideal +([\d.]+x|no difference)"),
    "run-one-scheme": (("run", CAPTURED, *FEW, "--scheme", "ideal"), r"simulated time +[\d.]+ us"),
    "run-synthetic": (("run", SYNTHETIC), r"speedup over ideal +([\d.]+x - [\d.]+x|no difference)"),
    "run-queueing": (("run", CAPTURED, *FEW, "--queueing", "--no-sensitivity"), r"speedup over ideal +[\d.]+x"),
    "run-four-schemes": (
        ("run", CAPTURED, *FEW, "--equal-capacity", "--no-sensitivity"),
        r"speedup over ideal +[\d.]+x",
    ),
    "run-five-schemes": (
        ("run", CAPTURED, *FEW, "--scheme", "buddy,unified-memory,pinned-host,bandwidth-compression,ideal"),
        r"buddy +([\d.]+x|no difference)",
    ),
    "train": (("train", "alexnet", "--batch", "512"), r"oracle +(- +)?100 %"),
    "train-all": (("train", "alexnet", "--batch", "512", "--scheme", "all"), r"oracle +(- +)?100 %"),
    "train-gist": (("train", "alexnet", "--scheme", "gist-fp16,gist-lossless,cswap"), r"gist-lossless +yes"),
    "train-max-batch": (
        ("train", "alexnet", "--max-batch", "--scheme", "vdnn-dyn", "--set", "training.device_memory=1280MiB"),
        r"vdnn-dyn +[\d,]+ +yes",
    ),
    "profile": (("profile", CAPTURED), r"compression ratio [\d.]+x"),
    "profile-synthetic": (("profile", SYNTHETIC), r"compression ratio [\d.]+x - [\d.]+x"),
}


def check_screen(shown: str, width: int, answer: str) -> None:
    """Check the width, the position of the answer, the number of caveats, and rows without content."""
    lines = shown.splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert re.search(answer, "\n".join(lines[:12])), "the answer is not in the first twelve lines"
    assert 0 <= sum(line.startswith("- ") for line in lines) <= MAX_CAVEATS
    assert [line for line in lines if is_empty_row(line)] == []


def is_empty_row(line: str) -> bool:
    """Return whether a line is a row whose cells are all "-"."""
    cells = re.split(r"  +", line.strip())[1:]
    return bool(cells) and set(cells) == {"-"}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_screen_fits_every_width(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, answer = COMMANDS[name]
    printed: list[Part] = []
    format_as_text = screen.format_as_text

    def record(parts: Iterable[Part], width: int | None = None) -> str:
        printed.extend(parts)
        return format_as_text(printed, width)

    monkeypatch.setattr(screen, "format_as_text", record)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(list(command)) == 0
    in_a_pipe = capsys.readouterr().out
    assert in_a_pipe == format_as_text(printed, 80)
    for width in WIDTHS:
        check_screen(format_as_text(printed, width), width, answer)


def paragraphs(html: str) -> str:
    """Return a notebook's display as text: a line for each paragraph and each row."""
    cells = re.sub(r"</t[dh]>", "  ", html)
    lines = re.sub(r"</tr>|</p>", "\n", cells)
    return unescape(re.sub(r"<[^>]*>", "", lines))


@pytest.mark.parametrize("kind", ["run", "train", "profile"])
def test_notebook_shows_the_answer_first_and_few_caveats(kind: str) -> None:
    result = {
        "run": lambda: buddysim.simulate_schemes(CAPTURED, kernels=slice(1)),
        "train": lambda: simulate("alexnet", 64, "titan-x", "vdnn-dyn"),
        "profile": lambda: buddysim.profile(CAPTURED),
    }[kind]()
    answers = {name: COMMANDS[name][1] for name in ("run", "profile")} | {"train": r"vdnn-dyn +yes"}
    check_screen(paragraphs(result._repr_html_()), 200, answers[kind])


def test_a_row_without_content_is_found() -> None:
    with pytest.raises(AssertionError):
        check_screen("answer\nmetadata   -      -\n", 80, "answer")
    check_screen("answer\ntotal   1 MiB      -\n", 80, "answer")
