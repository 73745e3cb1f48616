"""The commands in the documents do what they say they do."""

from __future__ import annotations

import csv
import os
import re
import shlex
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from buddysim.cli import REGISTRY, main, make_parser
from buddysim.report import screen
from tests.docs.generated import LONG, documents_of, exists, text_of
from tests.docs.shown import commands

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", "")
BESIDE = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "traces/README.md", "examples/README.md")
]
DOCUMENTS = [
    pytest.param(path, marks=pytest.mark.slow) if path in LONG else path
    for path in sorted([*BESIDE, *documents_of(ROOT / "docs")])
]
PAPERS = ("buddy-paper", "training-papers")
WIDTH = 80
#: Headings and row labels of numbers that count something: the thing counted is the unit.
COUNTED = re.compile(
    r"accesses|allocations|blocks|bytes|chunks|cycles|entries|events|faults|fills|groups|instructions|kernels|launch|"
    r"layers|lines|pages|parameters|reads|refs|registers|samples|shots|sms|snapshot|stream|write-backs|evicted|"
    r"default|value|points|flops|channels|slices|partitions|ways|count"
)
UNITS = re.compile(r"\b(correlation|ms|us|ns|s|GiB|MiB|KiB|B|GB/s|FLOPs|ratio)\b|%|sector|fraction")
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")


def readme_commands():
    """Every command of the README, in its order: in its code blocks and tables."""
    commands = re.findall(r"^(python -m .+)$|`(python -m [^`]+)`", README, flags=re.MULTILINE)
    return [block or inline for block, inline in commands]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder that looks like a checkout, in which files can be written."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("traces", "tests", "docs"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "out").mkdir()
    return folder


@pytest.mark.slow
def test_the_readmes_commands_work(checkout, monkeypatch, capfd):
    """In one go, because some read what others wrote; none prints anything cut, at 80 columns, or without a unit."""
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    tables = shown_tables(monkeypatch)
    ran = 0
    for command in readme_commands():
        _, _, module, *arguments = shlex.split(command)
        if module == "pytest":
            assert (ROOT / arguments[0]).exists(), command
            continue
        if arguments[0] == "capture" and "BUDDYSIM_SANITIZED" in os.environ:
            continue  # the sanitizer wants to be the first library that is preloaded
        if module == "buddysim":
            assert main(arguments) == 0, command
            shown = capfd.readouterr().out
            if (
                not {"--json", "--toml"} & {*arguments} and arguments[0] != "capture"
            ):  # a captured program prints its own
                assert not cut_or_too_wide(shown), command
            assert not [cell for table in tables for cell in without_unit(table)], command
            tables.clear()
        else:
            assert import_module(module).main(arguments) == 0, command
        ran += 1
    capfd.readouterr()
    assert ran >= 10
    assert (checkout / "out" / "fdtd2048.png").stat().st_size > 10_000


def shown_tables(monkeypatch):
    """The tables that commands print from now on."""
    tables = []
    as_text = screen.format_as_text

    def noting(parts, width=None):
        parts = list(parts)
        tables.extend(part for part in parts if isinstance(part, screen.ScreenTable))
        return as_text(parts, width)

    monkeypatch.setattr(screen, "format_as_text", noting)
    return tables


@pytest.mark.slow
@pytest.mark.parametrize("width", [100, 200, None])
def test_screens_use_the_width_that_there_is(width, monkeypatch, capsys):
    """In a pipe, without a width, a screen has 80 columns."""
    monkeypatch.chdir(ROOT)
    if width:
        monkeypatch.setenv("COLUMNS", str(width))
    lengths = []
    for command in (
        "list",
        "plot",
        "machines p100-nvlink2",
        "info traces/lud256.bin",
        "diff v100 a100-40",
        "networks show alexnet --batch 256",
        "train alexnet --batch 64 --scheme vdnn-all-m --stalls",
    ):
        assert main(shlex.split(command)) == 0, command
        shown = capsys.readouterr().out
        assert not cut_or_too_wide(shown, width or WIDTH), command
        lengths += map(len, shown.splitlines())
    assert max(lengths) > {None: WIDTH - 10, 100: WIDTH, 200: 100}[width]


def cut_or_too_wide(shown, width=WIDTH):
    """Lines that end in an ellipsis, or are wider than the screen though they could have been broken."""
    lines = shown.splitlines()
    return [line for line in lines if "\u2026" in line or (len(line) > width and len(line.split()) > 2)]


def without_unit(table):
    """Bare numbers whose heading, or the label of whose row, names neither a unit nor what is counted."""
    naming = [n for n, column in enumerate(table.columns) if n == 0 or column.heading == "quantity"]
    for n, column in enumerate(table.columns):
        for row in table.rows:
            cell = row[n] if n < len(row) else ""
            label = " ".join(row[n] for n in naming if n < len(row) and not NUMBER.fullmatch(row[n]))
            words = f"{column.group} {column.heading} {label}"
            named = UNITS.search(words) or COUNTED.search(words.lower())
            if NUMBER.fullmatch(cell) and column.heading and not named:
                yield column.heading, label, cell


def test_a_number_without_a_unit_and_a_cut_line_are_found():
    """The checks above see an example of each fault."""
    table = screen.ScreenTable([screen.Column("a"), screen.Column("b, ms"), screen.Column("layers")], [("1", "2", "3")])
    assert list(without_unit(table)) == [("a", "", "1")]
    assert cut_or_too_wide("fine\ncut\u2026") == ["cut\u2026"]
    assert cut_or_too_wide("word " * 30)
    assert not cut_or_too_wide("x" * 200)


def test_the_readmes_numbers_are_those_of_the_validation():
    accuracy = README[README.index("## Accuracy") : README.index("## Limits")]
    rows = compared_quantities()
    (steps,) = [row for row in rows if row["page"] == "operators"]
    count, near = re.fullmatch(r"(\d+) steps; (\d+) within 25 %", steps["note"]).groups()
    median = f"{float(steps['error_fraction']):.1%}".replace("%", " %")
    assert f"| {count} training steps of language models, in no fit | median {median}; {near} within 25 % |" in accuracy
    (timings,) = [row for row in rows if row["page"] == "layer-times" and not row["machine"]]
    count, median = timings["note"].split()[0], f"{float(timings['error_fraction']):.1%}".replace("%", " %")
    assert f"| {count} held-out layer times | median {median} |" in accuracy
    statuses = {page: Counter(row["status"] for row in rows if row["page"] == page) for page in PAPERS}
    buddy, training = statuses["buddy-paper"], statuses["training-papers"]
    reproduced, missed = ([one[status] for one in (buddy, training)] for status in ("reproduced", "not reproduced"))
    assert "reproduced: {} and {}; not: {} and {}".format(*reproduced, *missed) in accuracy
    assert f"{buddy.total()} numbers of Buddy Compression, {training.total()} of the others" in accuracy
    curves = [row for row in rows if row["comparison"] == "curves" and row["status"] in ("pass", "fail")]
    assert f"{sum(row['status'] == 'pass' for row in curves)} of {len(curves)} quantities within tolerance" in accuracy


def compared_quantities():
    """Rows of the table of all comparisons."""
    with (ROOT / "docs" / "validation" / "validation.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_readmes_python_works(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout)
    for snippet in re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL):
        exec(compile(snippet, "README.md", "exec"), {})
    cycles, fraction = capsys.readouterr().out.split()
    assert int(cycles) > 0
    assert 0 < float(fraction) < 1


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_targets_and_links_exist(document):
    text = text_of(document)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    names = REGISTRY.names()
    own = "\n".join(line for line in text.splitlines() if "--plugin" not in line)
    for name in re.findall(r"python -m buddysim ([a-z]+(?:-[a-z]+)*)", own):
        assert name in names
    for module in re.findall(r"python -m ((?:benchmarks|plots|tools)[a-z_.]*)", text):
        module_path = ROOT / module.rstrip(".").replace(".", "/")
        assert module_path.with_suffix(".py").exists() or (module_path / "__main__.py").exists(), module
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in link:
            assert not broken(document, link), link


def documented_commands(text):
    """Arguments of every ``python -m buddysim`` in a document's code that a test can parse."""
    for command in commands(text, lambda inline: not re.fullmatch(r"\w+( \w+)?", inline)):
        if "..." not in command and "--plugin" not in command:  # a pattern; a plug-in's names
            yield command


def parsed(arguments):
    """Whether a command takes these arguments; it doesn't run."""
    try:
        make_parser().parse_args(arguments)
    except SystemExit:
        return False
    return True


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_documented_command_has_arguments_that_there_are(document):
    for arguments in documented_commands(text_of(document)):
        assert parsed(arguments), shlex.join(arguments)


def test_a_command_that_is_no_more_is_found():
    """The check above sees an example of the fault."""
    (command,) = documented_commands("text\npython -m buddysim run x.bin --json - > y.json\n")
    assert command == ["run", "x.bin", "--json", "-"]
    assert parsed(command)
    assert not parsed(["run", "x.bin", "--jsonn", "-"])
    assert not parsed(["replay", "x.bin"])


def broken(document, link):
    """Whether a link to a file here leads nowhere, or to a heading that isn't there."""
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    if not exists(target):
        return True
    return bool(anchor) and target not in LONG and anchor not in anchors(text_of(target))


def anchors(text):
    """Return the anchors of a page's headings, as GitHub and the site name them."""
    headings = re.findall(r"^#+ +(.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_broken_links_are_found():
    """The check above sees an example of the fault."""
    document = ROOT / "docs" / "explanation" / "replay-model.md"
    assert not broken(document, "training-model.md")
    assert not broken(document, "#not-modelled")
    assert not broken(document, "../reference/cli.md#sweep")
    assert not broken(ROOT / "README.md", "docs/explanation/replay-model.md#not-modelled")
    assert broken(document, "counter.md")
    assert broken(document, "#not-modeled")
    assert broken(document, "../reference/cli.md#sweeps")
    assert broken(ROOT / "README.md", "docs/explanation/replay-model.md#not-modeled")
