"""Pages that are written from code: they say what the code says, at any width of the terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import buddysim
from buddysim.base.validation_table import FILE, page_rows
from buddysim.cli import REGISTRY
from tests.docs.generated import page
from tools import write_reference
from tools.reference import paper_pages, python_page
from tools.write_reference import DOCS, PAGES, write_pages


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("reference/")])
def test_pages_do_not_depend_on_the_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wide = PAGES[name]()
    monkeypatch.setenv("COLUMNS", "40")
    assert PAGES[name]() == wide


def a_page() -> str:
    return "a"


def b_page() -> str:
    return "b"


def test_pages_are_written_where_they_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_reference, "PAGES", {"x/a.md": a_page, "x/b.md": b_page})
    a, b = tmp_path / "x" / "a.md", tmp_path / "x" / "b.md"
    assert write_pages(tmp_path) == [a, b]
    b.write_text("c")
    assert write_pages(tmp_path) == [b]
    assert (a.read_text(), b.read_text()) == ("a", "b")


def test_pages_are_no_files_of_the_repository() -> None:
    if not (DOCS.parent / ".git").exists():
        pytest.skip("not in a clone")
    paths = [str(DOCS / name) for name in PAGES]
    ignored = subprocess.run(["git", "check-ignore", *paths], cwd=DOCS, capture_output=True, text=True, check=False)
    assert ignored.stdout.split() == paths


def test_every_command_has_a_section() -> None:
    assert not [name for name in REGISTRY.names() if f"\n## {name}\n" not in page("reference/cli.md")]


def test_every_public_name_has_a_section() -> None:
    described = {path for things in python_page.SECTIONS.values() for path, _ in things}
    public = {f"buddysim.{name}" for name in set(buddysim.__all__) - python_page.PACKAGES}
    assert public <= described


def test_pages_of_comparisons_have_every_number_of_their_table() -> None:
    """A quantity that the table has is on its page, as often as it is compared."""
    for name in ("accelsim", "dram", "hardware", "llm", "unified-memory"):
        lines = page(f"validation/{name}.md").splitlines()
        for row in page_rows(DOCS / "validation" / FILE, name):
            assert any(line.startswith(f"| {row['subject']} | {row['quantity']} |") for line in lines), row
    for name in ("buddy-paper", "training-papers"):
        text = page(f"validation/{name}.md")
        for row in page_rows(DOCS / "validation" / FILE, name):
            quantity = row["quantity"].partition(": ")[0] if "ISCA version, Fig" in row["subject"] else row["quantity"]
            assert f"| {quantity} |" in text, row


def test_every_cell_of_a_figure_is_simulated_reported_and_marked() -> None:
    rows = [
        {"quantity": f"cg: {column}", "simulated": value, "reference": "1.11", "status": status}
        for column, value, status in (
            ("a", "1.12", "reproduced"), ("b", "1.5", "shape only"), ("c", "4.0", "not reproduced"),
            ("d", "", "not run"),
        )
    ]  # fmt: skip
    assert [*paper_pages._figure_lines(rows)] == [
        "| simulated (paper) | a | b | c | d |",
        "|---|--:|--:|--:|--:|",
        "| cg | 1.12 (1.11) | 1.5 (1.11)~ | 4 (1.11)! | not run (1.11) |",
    ]
