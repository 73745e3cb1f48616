"""Markdown that the package writes: paragraphs and list items of lines of limited length."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

MAX_LINE = 120
_ITEM = re.compile(r"(?P<indent>\s*)(?P<mark>[-*] |\d+\. )?")


def wrap_markdown(text: str, width: int = MAX_LINE) -> str:
    """Wrap the paragraphs and list items that have a line longer than `width`; tables and headings stay."""
    return "\n".join(line for block in _blocks(text) for line in _wrapped(block, width))


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield paragraphs, list items, and the lines between them."""
    block: list[str] = []
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith(("|", "#", "<!--")):
            yield from ([block] if block else [])
            yield [line]
            block = []
        elif re.match(r"\s*([-*] |\d+\. )", line):
            yield from ([block] if block else [])
            block = [line]
        else:
            block.append(line)
    if block:
        yield block


def _wrapped(block: list[str], width: int) -> list[str]:
    first = block[0].lstrip()
    if max(map(len, block)) <= width or first.startswith(("|", "#", "<!--", "![")):
        return block
    match = _ITEM.match(block[0])
    assert match is not None  # both parts are optional
    indent, mark = match["indent"], match["mark"] or ""
    words = " ".join([block[0][match.end() :].strip(), *(line.strip() for line in block[1:])])
    return textwrap.wrap(
        words, width, initial_indent=indent + mark, subsequent_indent=indent + " " * len(mark),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
