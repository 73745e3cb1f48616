"""Documents are short, and so are their sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.generated import GENERATED as ON_DEMAND
from tests.docs.generated import text_of
from tests.docs.prose import (
    DOCS,
    GENERATED,
    MAX_MEAN,
    MAX_WORDS,
    MIN_SHORT_FRACTION,
    ROOT,
    count_words,
    pages,
    sentences,
    statistics,
)

PAGES = pages()


def words(names: set[str]) -> int:
    return sum(count_words(text_of(PAGES[name])) for name in names)


#: Pages of stored numbers and of their notes have lists of values in their cells.
WRITTEN = [name for name, path in PAGES.items() if path not in ON_DEMAND or name.startswith("reference/")]


@pytest.mark.parametrize("name", WRITTEN)
def test_sentences_are_short(name: str) -> None:
    page = statistics(name, text_of(PAGES[name]))
    assert page.mean <= MAX_MEAN
    assert page.short_fraction >= MIN_SHORT_FRACTION, page.long


def test_documents_stay_within_their_budget() -> None:
    inside = {name for name, path in PAGES.items() if path.is_relative_to(DOCS)}
    assert words({name for name in inside - set(GENERATED) if PAGES[name] not in ON_DEMAND}) <= MAX_WORDS


def test_the_readme_is_one_screenful() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert len(text.split()) <= 900


@pytest.mark.parametrize(("name", "test"), GENERATED.items())
def test_a_generated_page_has_its_test(name: str, test: str) -> None:
    """A page counts as generated only where a test compares it with its generator."""
    assert name in PAGES
    source = (ROOT / test).read_text(encoding="utf-8")
    assert "up_to_date" in source or "PAGES" in source or Path(name).name in source


def test_long_sentences_are_seen_everywhere() -> None:
    """The checks above see paragraphs, items and cells, but no code."""
    long = "word " * 30
    page = statistics("x", f"# {long}\n\n{long}\n\n- {long}\n- short one.\n\n| {long} | a |\n\n```sh\n{long}\n```\n")
    assert len(page.long) == 3
    assert len(page.prose) == 3
    assert page.mean == pytest.approx(62 / 3)
    assert sentences("See Fig. 3 of it. `a. B` is one [link. It](x.md) here! And so on.") == [
        "See Fig 3 of it.", "`code` is one link.", "It here!", "And so on.",
    ]  # fmt: skip
    assert count_words("2 x - `code`") == 3
