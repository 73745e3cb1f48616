"""Notebooks of the tutorials: all commands of the pages in their order; `tests/docs/test_tutorial*.py` run them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.notebook_cells import shell_of
from tools.tutorial_notebooks import TUTORIALS, main, notebook

PAGES = sorted(TUTORIALS.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_is_in_a_cell(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", "")
    commands = re.findall(r"^(?:python|export) .*$", text, re.MULTILINE)
    assert commands
    assert commands == [line for cell in shell_of(page) for line in cell.splitlines() if line in commands]


def test_the_notebooks_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.glob("*.ipynb")} == {page.stem for page in PAGES}
    content = json.loads((tmp_path / "sweep.ipynb").read_text(encoding="utf-8"))
    shown = ["".join(cell["source"]) for cell in content["cells"] if cell["metadata"].get("kind") == "figure"]
    assert 'display(Image("out/links.png"), Image("out/heat.png"))' in shown[-1]
    links = re.findall(r"\]\((\S+?)\)", "".join("".join(cell["source"]) for cell in content["cells"]))
    assert links
    assert all((TUTORIALS / link.removeprefix("../../docs/tutorials/")).exists() for link in links)


def test_ids_of_cells_differ() -> None:
    ids = [cell["id"] for cell in notebook(PAGES[0])["cells"]]
    assert len(set(ids)) == len(ids) > 4
