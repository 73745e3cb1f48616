"""The pages of docs/reference/ that are written from code are what the code says, at any width of the terminal."""

from __future__ import annotations

import pytest

import buddysim
from buddysim.cli import REGISTRY
from tools.reference import python_page
from tools.write_reference import FOLDER, PAGES, main


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", ["40", "200"])
def test_pages_are_written_from_code(name: str, width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run: python -m tools.write_reference"


def test_check_tells_the_page_that_differs(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.write_reference.FOLDER", tmp_path)
    monkeypatch.setattr("tools.write_reference.PAGES", {"a.md": lambda: "a", "b.md": lambda: "b"})
    assert main([]) == 0
    assert main(["--check"]) == 0
    (tmp_path / "b.md").write_text("c")
    assert main(["--check"]) == 1
    assert capsys.readouterr().out.startswith("docs/reference/b.md differs")


def test_every_command_has_a_section() -> None:
    page = (FOLDER / "cli.md").read_text(encoding="utf-8")
    assert not [name for name in REGISTRY.names() if f"\n## {name}\n" not in page]


def test_every_public_name_has_a_section() -> None:
    described = {path for things in python_page.SECTIONS.values() for path, _ in things}
    public = {f"buddysim.{name}" for name in set(buddysim.__all__) - python_page.PACKAGES}
    assert public <= described
