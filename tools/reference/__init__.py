"""Pages of docs/reference/ that are written from code and stored results: one module per kind of page."""

from __future__ import annotations

import re
from collections.abc import Sequence


def head(title: str) -> str:
    """Return the first lines of a page."""
    return f"<!-- Generated from code by `python -m tools.write_reference`. -->\n\n# {title}\n"


def cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")


def linked(text: str) -> str:
    """Return a text of Markdown whose documents, as sources name them, are links."""
    text = re.sub(r"(?<!`)docs/reference/([\w-]+)\.md", r"[\1](\1.md)", text)
    return re.sub(r"(?<!`)docs/(how-to|explanation|developers)/([\w-]+)\.md", r"[\2](../\1/\2.md)", text)


def table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table, behind an empty line; cells are as they are in Markdown, with escaped bars."""
    lines = [f"| {' | '.join(row)} |\n" for row in (headings, *rows)]
    return "\n" + lines[0] + "|" + "---|" * len(headings) + "\n" + "".join(lines[1:])
