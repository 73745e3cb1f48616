"""Write a notebook for each tutorial: `python -m tools.tutorial_notebooks [FOLDER]`, by default out/notebooks.

A notebook has the page's text, and a cell for each block of commands, in the page's order. What installs packages stays
text. After a cell that draws a figure, another one shows it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from buddysim.base.output import write_text

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
FOLDER = ROOT / "out" / "notebooks"
#: The first line of a cell of commands: bash, which ends at the first one that fails.
SHELL = "%%script bash -e"
#: The first cell: commands run in the clone's folder.
IN_THE_CLONE = "%cd -q ../.."
_BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<commands>.*?)^```\n", re.MULTILINE | re.DOTALL)
_INSTALLS = re.compile(r"^(sudo apt|pip) install ", re.MULTILINE)
_EXPORT = re.compile(r"^export (?P<setting>\w+=.*)\n", re.MULTILINE)
_FIGURE = re.compile(r"\bout/[\w-]+\.png\b")
_LINK = re.compile(r"\]\((?!https?:|#)")


def main(arguments: list[str]) -> int:
    """Write all notebooks; return the exit code."""
    folder = Path(arguments[0]) if arguments else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted(TUTORIALS.glob("*.md")):
        path = folder / f"{page.stem}.ipynb"
        write_text(path, json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n")
        print(path)
    return 0


def notebook(page: Path) -> dict[str, Any]:
    """Return the notebook of a page, in version 4.5 of the format; a cell of commands has its block's kind."""
    sources = [("code", "", IN_THE_CLONE), *_sources(page.read_text(encoding="utf-8"))]
    return {
        "cells": [_cell(number, *source) for number, source in enumerate(sources)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _sources(page: str) -> Iterator[tuple[str, str, str]]:
    """Type, kind of block, and text of each cell of a page."""
    text, end = "", 0
    for block in _BLOCK.finditer(page):
        text += page[end : block.start()]
        end = block.end()
        if not block["kind"].startswith("sh") or _INSTALLS.search(block["commands"]):
            text += block[0]
            continue
        yield "markdown", "", text
        text = ""
        yield from _of_commands(block["kind"].removeprefix("sh").strip(), block["commands"])
    yield "markdown", "", text + page[end:]


def _of_commands(kind: str, commands: str) -> Iterator[tuple[str, str, str]]:
    for setting in _EXPORT.findall(commands):  # a shell's variables end with its cell
        yield "code", kind, f"%env {setting}"
    commands = _EXPORT.sub("", commands)
    yield "code", kind, f"{SHELL}\n{commands}"
    if figures := list(dict.fromkeys(_FIGURE.findall(commands))):
        shown = ", ".join(f'Image("{figure}")' for figure in figures)
        yield "code", "figure", f"from IPython.display import Image, display\n\ndisplay({shown})"


def _cell(number: int, cell_type: str, kind: str, text: str) -> dict[str, Any]:
    source = _LINK.sub("](../../docs/tutorials/", text.strip()) if cell_type == "markdown" else text.strip()
    cell = {"cell_type": cell_type, "id": f"cell-{number}", "metadata": {"kind": kind} if kind else {}}
    lines = source.splitlines(keepends=True)
    return {**cell, "source": lines, **({"execution_count": None, "outputs": []} if cell_type == "code" else {})}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
