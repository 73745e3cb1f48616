"""Long paragraphs and list items are wrapped; tables, headings and short lines stay."""

from __future__ import annotations

from buddysim.base.markdown import wrap_markdown


def test_long_paragraphs_and_items_are_wrapped() -> None:
    text = "one two three\nfour five six seven\n\n1. eight nine ten eleven twelve"
    assert wrap_markdown(text, 16) == "one two three\nfour five six\nseven\n\n1. eight nine\n   ten eleven\n   twelve"


def test_tables_headings_and_short_lines_stay() -> None:
    text = "# a long heading of a page\n\n| a | table that is wide |\n|---|---|\n\nshort\nlines\n\n- item\n  more\n"
    assert wrap_markdown(text, 12) == text
