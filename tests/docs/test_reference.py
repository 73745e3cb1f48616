"""Pages that are written from code: they say what the code says, at any width of the terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import buddysim
from buddysim.cli import REGISTRY
from tests.docs.generated import page
from tools import write_reference
from tools.reference import python_page
from tools.write_reference import DOCS, PAGES, write_pages


@pytest.mark.parametrize("name", PAGES)
def test_pages_do_not_depend_on_the_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wide = PAGES[name]()
    monkeypatch.setenv("COLUMNS", "40")
    assert PAGES[name]() == wide
    assert "python -m tools.write_reference" in wide


def test_pages_are_written_where_they_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_reference, "PAGES", {"x/a.md": lambda: "a", "x/b.md": lambda: "b"})
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
