"""Every label that a screen prints has a definition that stands alone, and `explain` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.report import labels, screen
from buddysim.report.counter_texts import counter_texts
from buddysim.report.screen import Part, ScreenTable

TRACES = Path(__file__).parents[2] / "traces"
LUD = str(TRACES / "lud256.bin")
XZ = str(TRACES / "jacobi2d.bin")

COMMANDS = (
    ("run", XZ, "--queueing", "--kernels", "0:1"),
    ("run", LUD, "--no-sensitivity", "--scheme", "buddy,ideal,unified-memory,pinned-host", "--equal-capacity"),
    ("run", LUD, "--no-sensitivity", "--scheme", "buddy,ideal,unified-memory,pinned-host,bandwidth-compression"),
    ("profile", XZ),
    ("profile", LUD),
    ("train", "alexnet", "--batch", "64", "--scheme", "vdnn-dyn,gist-fp16,cswap,cdma-zv,oracle,baseline-p", "--stalls"),
    (
        "train",
        "alexnet",
        "--max-batch",
        "--scheme",
        "vdnn-dyn",
        "--set",
        "training.device_memory=1280MiB",
    ),
    ("networks", "list"),
    ("networks", "show", "alexnet"),
    ("machines",),
    ("machines", "v100"),
    ("machines", "titan-x"),
    ("info", XZ),
    ("traces",),
    ("list", "figure"),
    ("generate",),
)


def printed_labels(parts: list[Part]) -> Iterator[str]:
    """Return headings of tables, and names of rows of tables whose first column has no heading."""
    for part in parts:
        if not isinstance(part, ScreenTable) or not any(column.heading for column in part.columns):
            continue
        for column in part.columns:
            if column.group.endswith(", %"):
                yield f"{column.group} {column.heading}"
            elif column.group:
                yield column.group
            elif column.heading:
                yield column.heading
        if part.columns[0].heading == "" and len(part.rows[0]) > 1 and not part.rows[0][0].isdecimal():
            yield from (row[0].strip() for row in part.rows if row)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]).replace(str(TRACES), ""))
def test_every_printed_label_is_explained(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[Part] = []
    original = screen.format_as_text

    def format_and_record(parts: list[Part], width: int | None = None) -> str:
        printed.extend(parts)
        return original(printed, width)

    monkeypatch.setattr(screen, "format_as_text", format_and_record)
    main(list(command))
    names = {
        *("buddy", "ideal", "unified-memory", "pinned-host", "bandwidth-compression"),  # schemes are columns
        *("figure", "workload"),  # the kind that is listed
    }
    unknown = {
        label
        for label in printed_labels(printed)
        if label.replace("-\n", "-") not in names and not labels.find_labels(re.sub(r"-\n", "-", label))
    }
    assert printed
    assert not unknown


def test_definitions_of_labels_stand_alone() -> None:
    counters = {counter.name for counter in counter_texts()}
    for label in labels.labels():
        assert re.fullmatch(r"[A-Z][^.]*\.", label.text.replace("2.5", "2").replace("0.5", "1")), label
        assert not re.match(r"(Of|Those|These|What|It|Likewise)\b", label.text), label
        assert set(label.counters) <= counters, label


def test_explain_finds_labels_whatever_their_case_and_unit(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("Speedup over ideal", "time ms", "device memory", "buddy fraction", "link GiB (compressed)"):
        assert main(["explain", *name.split()]) == 0, name
    said = capsys.readouterr().out
    assert "performance" not in said
    assert "speedup over ideal, on the screen of run: Time of the baseline" in said
    assert main(["explain", "speedup", "over", "idea"]) == 2
    assert "nearest: speedup over ideal" in capsys.readouterr().err
