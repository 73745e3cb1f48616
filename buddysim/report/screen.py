"""The screen of a command: paragraphs and tables that fit the width of the terminal, 80 columns elsewhere.

A table that is too wide first shortens the columns that allow it, then leaves out columns by their priority, then
wraps texts and folds names. What still does not fit becomes several tables, each with the first columns of the whole.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, zip_longest

from rich.cells import cell_len, chop_cells
from rich.console import Console

DEFAULT_WIDTH = 80
"""Columns of a screen that is no terminal: a pipe, a file."""

#: A column of texts gets no narrower than this; names are folded at the other width.
_MIN_TEXT_WIDTH = 30
_NAME_WIDTH = 44
_COLUMN_SPACING = 2
_MIN_SCREEN_WIDTH = 20
#: The text of a cell to which no number applies.
NOT_APPLICABLE = "-"
#: A line never breaks between a number and its unit.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[KMGT]i?B(?:/s)?|B|ps|ns|us|ms|s)(?![\w/]))")
_JOINED = "\N{NO-BREAK SPACE}"
_CUT = ".."


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    heading : with the unit of its numbers; may have several lines
    left : whether cells are aligned to the left, as names and texts are; numbers are aligned to the right
    text : whether cells are sentences, which wrap
    priority : 0: never left out; of the others, the column with the largest number is left out first
    min_width : the column is at least this wide
    wrap_to : the column gets no narrower than this where the table is too wide, and its cells wrap; 0: by its kind
    shorten_to : characters to which cells are shortened, in their middle, where the table is too wide; 0: never
    group : heading above this column and its neighbours of the same group
    """

    heading: str
    left: bool = False
    text: bool = False
    priority: int = 0
    min_width: int = 0
    wrap_to: int = 0
    shorten_to: int = 0
    group: str = ""


class Spanning(str):
    """A text that ends a row: it runs over all further columns."""

    __slots__ = ()


@dataclass(frozen=True)
class ScreenTable:
    """A table.

    Attributes
    ----------
    columns : in the order in which they are shown
    rows : cells of each row; missing cells at the end are empty, and an empty row is an empty line
    names : number of columns, from the first one, that every part of a split table repeats
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
    """Return a table of names whose last column holds sentences; without headings, it has none."""
    width = max(map(len, rows), default=len(headings))
    shown = [*headings, *[""] * (width - len(headings))]
    return ScreenTable([Column(text, left=True, text=n == width - 1) for n, text in enumerate(shown)], rows)


def print_screen(parts: Iterable[Part]) -> None:
    """Print the parts, one below the other, at the width of the screen."""
    sys.stdout.write(format_as_text(parts, screen_width()))


def screen_width() -> int:
    """Return the columns of the screen: those of COLUMNS, of the terminal, or 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return max(int(columns), _MIN_SCREEN_WIDTH)
    if sys.stdout.isatty():
        return max(Console().width, _MIN_SCREEN_WIDTH)
    return DEFAULT_WIDTH


def format_as_text(parts: Iterable[Part], width: int | None = None) -> str:
    """Return the parts as text.

    Parameters
    ----------
    width : no line is longer, except for a single longer word; None: nothing is wrapped or left out
    """
    lines: list[str] = []
    for part in parts:
        if isinstance(part, ScreenTable):
            for number, block in enumerate(_blocks(part, width)):
                lines += [""] * bool(number) + _table_lines(part, block, width)
        else:
            lines += [line for paragraph in part.split("\n") for line in _wrap(paragraph, width)]
    return "".join(f"{make_printable(line.rstrip())}\n" for line in lines)


def shown_columns(table: ScreenTable, width: int | None) -> list[int]:
    """Return the columns of a table that a screen of some width shows; the others are left out by their priority."""
    return sorted({column for block in _blocks(table, width) for column in block})


def format_as_html(parts: Iterable[Part]) -> str:
    """Return the parts as HTML, for a notebook."""
    return "".join(
        _html_table(part) if isinstance(part, ScreenTable) else f"<p>{escape(part)}</p>" for part in parts if part
    )


def make_printable(text: str) -> str:
    """Return a text from a file with everything replaced that could steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def shorten(text: str, length: int) -> str:
    """Return a text of at most `length` characters; a longer one loses its middle."""
    if len(text) <= length:
        return text
    end = max((length - len(_CUT)) // 2, 0)
    return text[: length - len(_CUT) - end] + _CUT + text[len(text) - end :]


def _html_table(table: ScreenTable) -> str:
    def cell(tag: str, column: Column, text: str) -> str:
        side = "left" if column.left else "right"
        return f'<{tag} style="text-align:{side};white-space:pre-wrap">{escape(text)}</{tag}>'

    head = "".join(cell("th", column, column.heading.replace("\n", " ")) for column in table.columns)
    groups = "".join(
        f'<th colspan="{len(list(columns))}">{escape(group)}</th>'
        for group, columns in groupby(table.columns, lambda column: column.group)
    )
    above = f"<tr>{groups}</tr>" if any(column.group for column in table.columns) else ""
    rows = ("".join(_html_cells(table, row, cell)) for row in table.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows if row)
    return f"<table><thead>{above}<tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_cells(table: ScreenTable, row: Sequence[str], cell: Callable[[str, Column, str], str]) -> Iterable[str]:
    for number, (column, text) in enumerate(zip(table.columns, row, strict=False)):
        if isinstance(text, Spanning):
            yield f'<td colspan="{len(table.columns) - number}">{escape(text)}</td>'
        else:
            yield cell("td", column, text)


def _wrap(text: str, width: int | None) -> list[str]:
    """The lines of a paragraph; those after the first are indented."""
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


def _wrap_cell(text: str, width: int, column: Column) -> list[str]:
    """The lines of a cell: shortened, wrapped between words, or folded anywhere."""
    lines: list[str] = []
    for line in text.split("\n"):
        if cell_len(line) <= width:
            lines.append(line)
        elif column.shorten_to and column.shorten_to <= width:
            lines.append(shorten(line, width))
        else:
            indent = " " * (len(line) - len(line.lstrip()))
            wrapped = _wrap_words(line, width, indent) if " " in line.strip() else [line]
            lines += [part for one in wrapped for part in chop_cells(one, width)]
    return lines


def _wrap_words(text: str, width: int, indent: str) -> list[str]:
    lines, line = [], indent
    for joined in _BEFORE_UNIT.sub(_JOINED, text).split(" "):
        word = joined.replace(_JOINED, " ")
        spaced = f"{line} " if line.strip() else line
        if line.strip() and cell_len(spaced) + cell_len(word) > width:
            lines.append(line)
            spaced = indent
        line = spaced + word
    return [*lines, line]


def _natural_width(table: ScreenTable, column: int) -> int:
    """The width of a column in a table that is not too wide."""
    return max(_content_width(table, column), table.columns[column].min_width)


def _content_width(table: ScreenTable, column: int) -> int:
    return max(cell_len(line) for cell in _sized_cells(table, column) for line in cell.split("\n"))


def _sized_cells(table: ScreenTable, column: int) -> list[str]:
    """The cells that decide a column's width: a row of a title alone runs on over the next columns."""
    titles = {n for n, row in enumerate(table.rows, 1) if len(row) == 1 and len(table.columns) > 1}
    return [cell for n, cell in enumerate(table.cells(column)) if n not in titles and not isinstance(cell, Spanning)]


def _min_width(table: ScreenTable, column: int) -> int:
    """The width that a column needs in a table that is too wide."""
    natural = _content_width(table, column)
    if table.columns[column].wrap_to:
        return min(natural, table.columns[column].wrap_to)
    if table.columns[column].shorten_to:
        return min(natural, table.columns[column].shorten_to)
    if table.columns[column].text:
        return min(natural, _MIN_TEXT_WIDTH)
    return min(natural, _NAME_WIDTH) if table.columns[column].left else natural


def _min_name_width(table: ScreenTable, column: int, width: int) -> int:
    """The same for a column that every part repeats: half of the screen is for the others."""
    return min(_min_width(table, column), max(width // (2 * table.names) - _COLUMN_SPACING, 1))


def _total(widths: Iterable[int]) -> int:
    every = list(widths)
    return sum(every) + _COLUMN_SPACING * (len(every) - 1)


def _blocks(table: ScreenTable, width: int | None) -> list[dict[int, int]]:
    """The columns of each part of a table, with their widths: one part if that is possible."""
    every = [c for c in range(len(table.columns)) if c < table.names or any(table.cells(c)[1:]) or not table.rows]
    natural = {column: _natural_width(table, column) for column in every}
    if width is None or _total(natural.values()) <= width:
        return [natural]
    every = [c for c in every if c < table.names or not table.rows or _says_something(table, c)]
    every = _without_less_important(table, every, width)
    block = {column: _min_width(table, column) for column in every}
    if _total(block.values()) <= width:
        return [_widened(block, natural, width)]
    return _split(table, every, natural, width)


def _without_less_important(table: ScreenTable, every: list[int], width: int) -> list[int]:
    """The columns that remain if those of the largest priority numbers go, until the table fits."""
    remaining = list(every)
    while _total(_min_width(table, column) for column in remaining) > width:
        droppable = [column for column in remaining if table.columns[column].priority]
        if not droppable:
            break
        remaining.remove(max(droppable, key=lambda column: (table.columns[column].priority, column)))
    return remaining


def _split(table: ScreenTable, every: list[int], natural: dict[int, int], width: int) -> list[dict[int, int]]:
    """Several parts, each with the first columns of the table."""
    names = {column: _min_name_width(table, column, width) for column in every[: table.names]}
    available = width - sum(names.values()) - _COLUMN_SPACING * len(names)
    blocks: list[dict[int, int]] = [dict(names)]
    used = 0
    for column in every[table.names :]:
        least = _min_width(table, column)
        if used and used + least > available:
            blocks.append(dict(names))
            used = 0
        blocks[-1][column] = least
        used += least + _COLUMN_SPACING
    return [_widened(block, natural, width) for block in blocks]


def _says_something(table: ScreenTable, column: int) -> bool:
    return any(cell not in ("", NOT_APPLICABLE) for cell in table.cells(column)[1:])


def _widened(block: dict[int, int], natural: dict[int, int], width: int) -> dict[int, int]:
    """The same with the remaining width given to columns that need more, from the last one on."""
    left = width - _total(block.values())
    for column in reversed(block):
        more = max(0, min(left, natural[column] - block[column]))
        block[column] += more
        left -= more
    return block


def _rows_of(table: ScreenTable, block: dict[int, int]) -> list[Sequence[str]]:
    """The rows that say something in a part of a table; a row of a name alone is the title of those below it."""
    shown = [column for column in block if column >= table.names]
    if len(block) == len(table.columns):
        return list(table.rows)
    rows: list[Sequence[str]] = []
    for row in table.rows:
        title = 0 < len(row) <= table.names
        if not row:
            rows += [row] * bool(rows and rows[-1])
            continue
        if rows and 0 < len(rows[-1]) <= table.names and (title or not row[0].startswith(" ")):
            rows.pop()
        says_something = any(column < len(row) and row[column] not in ("", NOT_APPLICABLE) for column in shown)
        if title or says_something or isinstance(row[-1], Spanning):
            rows.append(row)
    return rows


def _table_lines(table: ScreenTable, block: dict[int, int], width: int | None) -> list[str]:
    columns = [table.columns[column] for column in block]
    widths = list(block.values())
    lines = _group_lines(columns, widths)
    if any(column.heading for column in columns):
        lines += _row_lines([column.heading for column in columns], columns, widths, at_bottom=True)
    for row in _rows_of(table, block):
        if not row:
            lines.append("")
        elif len(row) == 1 and len(block) > 1:
            lines += _wrap(row[0], _total(widths)) if not columns[0].shorten_to else [row[0]]
        elif isinstance(row[-1], Spanning):
            lines += _spanning_lines(row, columns, widths, width)
        else:
            lines += _row_lines([row[column] if column < len(row) else "" for column in block], columns, widths)
    return lines


def _spanning_lines(
    row: Sequence[str], columns: Sequence[Column], widths: Sequence[int], width: int | None
) -> list[str]:
    """The lines of a row whose last cell runs over all further columns, to the end of the screen."""
    own = len(row) - 1
    rest = Column("", left=True, text=True)
    left = cell_len(row[-1]) if width is None else width - _total(widths[:own]) - _COLUMN_SPACING
    wide = max(left, cell_len(max(row[-1].split(), key=len, default="")))
    return _row_lines(row, [*columns[:own], rest], [*widths[:own], wide])


def _group_lines(columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    """The line of headings above groups of columns; nothing if there are no groups."""
    if not any(column.group for column in columns):
        return []
    line = ""
    for group, members in groupby(range(len(columns)), lambda n: columns[n].group):
        numbers = list(members)
        end = _total(widths[: numbers[-1] + 1])
        if group:
            line = line.ljust(end - max(cell_len(group), _total(widths[n] for n in numbers))) + group
    return [line]


def _row_lines(
    cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], at_bottom: bool = False
) -> list[str]:
    """The lines of one row; headings are aligned at the bottom."""
    wrapped = [_wrap_cell(cell, width, column) for cell, width, column in zip(cells, widths, columns, strict=True)]
    if at_bottom:
        height = max(map(len, wrapped))
        wrapped = [[""] * (height - len(lines)) + lines for lines in wrapped]
    return [
        (" " * _COLUMN_SPACING).join(
            _aligned(text, width, column.left) for text, width, column in zip(line, widths, columns, strict=True)
        )
        for line in zip_longest(*wrapped, fillvalue="")
    ]


def _aligned(text: str, width: int, left: bool) -> str:
    padding = " " * (width - cell_len(text))
    return text + padding if left else padding + text
