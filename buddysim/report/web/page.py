"""The HTML file: headings, tables, charts, parts that open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from typing import Any
from urllib.parse import quote

from buddysim.base.errors import BuddysimError
from buddysim.base.terminal import one_line

Row = Mapping[str, Any]
_LONGEST_TEXT = 300
#: Rows of a table; a longer one says how many are left out.
MAX_ROWS = 5000


@dataclass
class Page:
    """A file in the making.

    Attributes
    ----------
    title : of the window and of the heading
    body : pieces of HTML
    charts : how many there are, for their names
    """

    title: str
    body: list[str] = field(default_factory=list)
    charts: int = 0

    def heading(self, text: str) -> None:
        """A heading of a part."""
        self.body.append(f"<h2>{shown(text)}</h2>")

    def paragraph(self, text: str) -> None:
        """A paragraph."""
        self.body.append(f"<p>{shown(text)}</p>")

    def links(self, files: Mapping[str, str]) -> None:
        """A line of links to other pages in the same folder, by their texts; no file: this page."""
        texts = (f'<a href="{escape(quote(file))}">{shown(text)}</a>' if file else shown(text)
                 for text, file in files.items())  # fmt: skip
        self.body.append(f"<p>{' '.join(texts)}</p>")

    def open_part(self, title: str) -> None:
        """What follows is shown when the reader opens it, up to `close_part`."""
        self.body.append(f"<details><summary>{shown(title)}</summary>")

    def close_part(self) -> None:
        """Ends a part."""
        self.body.append("</details>")

    def table(self, rows: Sequence[Row], columns: Sequence[str]) -> None:
        """A table whose columns sort by a click on their heads."""
        cells = "".join(f'<th scope="col" tabindex="0">{shown(name)}</th>' for name in columns)
        lines = [f"<table><thead><tr>{cells}</tr></thead><tbody>"]
        for row in rows[:MAX_ROWS]:
            lines.append("<tr>" + "".join(_cell(row.get(name)) for name in columns) + "</tr>")
        lines.append("</tbody></table>")
        self.body.append("\n".join(lines))
        if len(rows) > MAX_ROWS:
            self.paragraph(f"{len(rows) - MAX_ROWS:,} more rows are not shown: results -o writes all of them.")

    def chart(self, figure: Any) -> None:
        """A Plotly figure."""
        self.charts += 1
        name = f"chart-{self.charts}"
        self.body.append(
            figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config={"displaylogo": False})
        )

    def text(self) -> str:
        """The whole file."""
        offline = _plotly("offline")
        folder = resources.files(__package__ or "")
        style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "sort.js"))
        parts = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{shown(self.title)}</title>',
            f"<style>{style}</style>",
            f"<script>{offline.get_plotlyjs()}</script></head><body>",
            f"<h1>{shown(self.title)}</h1>",
            *self.body,
            f"<script>{script}</script></body></html>\n",
        )
        return "\n".join(parts)


def shown(text: object) -> str:
    """A text of whatever origin, as HTML shows it: one line, nothing of it is markup."""
    return escape(one_line(str(text), _LONGEST_TEXT))


def _cell(value: Any) -> str:
    if value is None:
        return '<td class="none">-</td>'
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
        return f'<td class="number" data-value="{value!r}">{text}</td>'
    return f"<td>{shown(value)}</td>"


def _plotly(module: str) -> Any:
    """A module of Plotly; a BuddysimError with the install line where it isn't there."""
    from importlib import import_module

    try:
        return import_module(f"plotly.{module}")
    except ImportError:
        raise BuddysimError("report: Plotly is not installed: pip install 'buddysim[report]'") from None


def graph_objects() -> Any:
    """Plotly's figures and traces; a BuddysimError with the install line where it isn't there."""
    return _plotly("graph_objects")
