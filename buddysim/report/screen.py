"""What a command prints: paragraphs and tables, as wide as where they are read. Nothing is ever cut.

On a terminal, and where COLUMNS is set, text wraps at that width; a table that is wider becomes several, one below
the other, each with the first columns of the whole. Into a pipe or a file every paragraph is one line.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

#: A column of texts gets no narrower than this; names are folded at the other width.
_LEAST_TEXT_WIDTH = 30
_NAME_WIDTH = 44
_GAP = 2
_ENDLESS = 1 << 20
_NARROWEST = 20
#: What a cell says that has no number.
NOT_APPLICABLE = "-"
#: Between a number and its unit no line ends.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[KMGT]i?B(?:/s)?|B|ps|ns|us|ms|s)(?![\w/]))")
_JOINED = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    heading : with the unit of its numbers; may have several lines
    left : numbers stand to the right, names and texts to the left
    text : sentences, which wrap
    """

    heading: str
    left: bool = False
    text: bool = False


@dataclass(frozen=True)
class ScreenTable:
    """A table.

    Attributes
    ----------
    columns : of each its heading and kind
    rows : of each the cells; missing ones at the end are empty
    names : of so many columns, the first ones, every part of a wide table has a copy
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    names: int = 1

    def cells(self, column: int) -> list[str]:
        """The heading of a column and its cells."""
        return [self.columns[column].heading, *(row[column] if column < len(row) else "" for row in self.rows)]


#: A paragraph or a table; an empty paragraph is an empty line.
Part = str | ScreenTable


def description_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> ScreenTable:
    """A table of names, whose last column is sentences; without headings it has none."""
    width = max(map(len, rows), default=len(headings))
    shown = [*headings, *[""] * (width - len(headings))]
    return ScreenTable([Column(text, left=True, text=n == width - 1) for n, text in enumerate(shown)], rows)


def print_screen(parts: Iterable[Part]) -> None:
    """Prints the parts, one below the other, at the width of the screen."""
    sys.stdout.write(format_as_text(parts, screen_width()))


def screen_width() -> int | None:
    """Columns of the screen: those of COLUMNS, or of the terminal; None where lines may be as long as they are."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return max(int(given), _NARROWEST)
    if sys.stdout.isatty():
        return max(Console().width, _NARROWEST)
    return None


def format_as_text(parts: Iterable[Part], width: int | None = None) -> str:
    """The parts as text.

    Parameters
    ----------
    width : no line is longer, but for a single word that is; None: nothing is wrapped
    """
    lines: list[str] = []
    for part in parts:
        if isinstance(part, ScreenTable):
            for number, block in enumerate(_blocks(part, width)):
                lines += [""] * bool(number) + _drawn(part, block, width)
        else:
            lines += [line for paragraph in part.split("\n") for line in _wrapped(paragraph, width)]
    return "".join(f"{make_printable(line.rstrip())}\n" for line in lines)


def format_as_html(parts: Iterable[Part]) -> str:
    """The parts as HTML, for a notebook."""
    return "".join(
        _html_table(part) if isinstance(part, ScreenTable) else f"<p>{escape(part)}</p>" for part in parts if part
    )


def make_printable(text: str) -> str:
    """Text from a file, safe for a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _html_table(table: ScreenTable) -> str:
    def cell(tag: str, column: Column, text: str) -> str:
        side = "left" if column.left else "right"
        return f'<{tag} style="text-align:{side};white-space:pre-wrap">{escape(text)}</{tag}>'

    head = "".join(cell("th", column, column.heading.replace("\n", " ")) for column in table.columns)
    rows = ("".join(cell("td", *pair) for pair in zip(table.columns, row, strict=False)) for row in table.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _wrapped(text: str, width: int | None) -> list[str]:
    """A paragraph, its further lines indented."""
    if width is None or cell_len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()))
    lines, line = [], indent
    for joined in _BEFORE_UNIT.sub(_JOINED, text).split(" "):
        word = joined.replace(_JOINED, " ")
        if not word:
            continue
        spaced = line if not line.strip() else f"{line} "
        if line.strip() and cell_len(spaced) + cell_len(word) > width:
            lines.append(line)
            spaced = f"{indent}  "
        line = spaced + word
    return [*lines, line]


def _natural(table: ScreenTable, column: int) -> int:
    return max(cell_len(line) for cell in table.cells(column) for line in cell.split("\n"))


def _least(table: ScreenTable, column: int) -> int:
    """The width that a column needs, in a table that is too wide."""
    natural = _natural(table, column)
    if table.columns[column].text:
        return min(natural, _LEAST_TEXT_WIDTH)
    return min(natural, _NAME_WIDTH) if table.columns[column].left else natural


def _least_name(table: ScreenTable, column: int, width: int) -> int:
    """The same of a column that every part repeats: half of the screen is for the others."""
    return min(_least(table, column), max(width // (2 * table.names) - _GAP, 1))


def _blocks(table: ScreenTable, width: int | None) -> list[dict[int, int]]:
    """The columns of each part of a table that is too wide for one, with their widths."""
    every = [c for c in range(len(table.columns)) if c < table.names or any(table.cells(c)[1:]) or not table.rows]
    natural = {column: _natural(table, column) for column in every}
    if width is None or sum(natural.values()) + _GAP * (len(natural) - 1) <= width:
        return [natural]
    every = [c for c in every if c < table.names or not table.rows or _says_something(table, c)]
    names = {column: _least_name(table, column, width) for column in every[: table.names]}
    room = width - sum(names.values()) - _GAP * len(names)
    blocks: list[dict[int, int]] = [dict(names)]
    used = 0
    for column in every[table.names :]:
        least = _least(table, column)
        if used and used + least > room:
            blocks.append(dict(names))
            used = 0
        blocks[-1][column] = least
        used += least + _GAP
    return [_widened(block, natural, width) for block in blocks]


def _says_something(table: ScreenTable, column: int) -> bool:
    return any(cell not in ("", NOT_APPLICABLE) for cell in table.cells(column)[1:])


def _widened(block: dict[int, int], natural: dict[int, int], width: int) -> dict[int, int]:
    """The same, with the room that is left given to columns that want more, from the last one on."""
    left = width - sum(block.values()) - _GAP * (len(block) - 1)
    for column in reversed(block):
        more = max(0, min(left, natural[column] - block[column]))
        block[column] += more
        left -= more
    return block


def _rows_of(table: ScreenTable, block: dict[int, int]) -> list[Sequence[str]]:
    """The rows that say something in a part of a table; a row of a name alone heads those below it."""
    shown = [column for column in block if column >= table.names]
    if len(block) == len(table.columns):
        return list(table.rows)
    kept: list[Sequence[str]] = []
    for row in table.rows:
        title = len(row) <= table.names
        if kept and len(kept[-1]) <= table.names and (title or not row[0].startswith(" ")):
            kept.pop()
        if title or any(column < len(row) and row[column] not in ("", NOT_APPLICABLE) for column in shown):
            kept.append(row)
    return kept


def _drawn(table: ScreenTable, block: dict[int, int], width: int | None) -> list[str]:
    headed = any(table.columns[column].heading for column in block)
    drawn = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=headed)
    for column, cells in block.items():
        kind = table.columns[column]
        drawn.add_column(
            Text(kind.heading),
            justify="left" if kind.left else "right",
            overflow="fold",
            width=max(cells, 1),
            vertical="top",
        )
    for row in _rows_of(table, block):
        drawn.add_row(*(Text(row[column] if column < len(row) else "") for column in block))
    console = Console(file=io.StringIO(), width=_ENDLESS, color_system=None, legacy_windows=False)
    console.print(drawn)
    return str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
