"""Measure the documents: words by page, and the length of sentences.

``python -m tests.docs.prose [--long] [PAGE ...]`` prints one row per page; ``--long`` adds the sentences of 30 words or
more. A word is a run of characters between spaces that has a letter or a digit; code in backticks is one word. Code
blocks have no sentences. Each list item begins a sentence; so does each table cell of eight words or more.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.generated import GENERATED as ON_DEMAND
from tests.docs.generated import documents_of, text_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Pages of the repository that a program writes, with the test that compares them with what the program writes.
GENERATED = {
    "explanation/ideas-today": "tests/figures/test_ideas_today.py",
    "validation/scripts": "tests/capture/torch/test_scripts.py",
    "validation/sharded-steps": "tests/training/sharding/test_measured_steps.py",
}
OUTSIDE = ("README.md", "CONTRIBUTING.md", "plots/README.md", "traces/README.md", "examples/README.md")
LONG_SENTENCE = 30
MIN_CELL_WORDS = 8
MAX_MEAN = 18.0
MIN_SHORT_FRACTION = 0.95
MAX_WORDS = 60_000

ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|vs|cf|Fig|Figs|Tab|Sec|Eq|No|approx|al)\.")
END = re.compile(r"(?<=[.!?])[)\"*]*\s+(?=[A-Z0-9`(\[*\"])")


@dataclass(frozen=True)
class PageStatistics:
    """Words of a page, and words of each of its sentences; `cells` are sentences in tables."""

    name: str
    words: int
    prose: tuple[str, ...]
    cells: tuple[str, ...]

    @property
    def lengths(self) -> list[int]:
        return [count_words(sentence) for sentence in self.prose]

    @property
    def mean(self) -> float:
        """Mean words of the sentences outside of tables; 0 where there is none."""
        return sum(self.lengths) / len(self.lengths) if self.prose else 0.0

    @property
    def long(self) -> list[str]:
        return [one for one in (*self.prose, *self.cells) if count_words(one) >= LONG_SENTENCE]

    @property
    def short_fraction(self) -> float:
        """Fraction of sentences under 30 words; 1 where there is none."""
        total = len(self.prose) + len(self.cells)
        return 1 - len(self.long) / total if total else 1.0


def count_words(text: str) -> int:
    return sum(any(map(str.isalnum, word)) for word in text.split())


def sentences(text: str) -> list[str]:
    """Split a paragraph, a list item or a cell into sentences."""
    text = re.sub(r"`[^`]*`", "`code`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = ABBREVIATIONS.sub(r"\1", " ".join(text.split()))
    return [one for one in END.split(text) if count_words(one)]


def statistics(name: str, text: str) -> PageStatistics:
    """Measure one page of Markdown."""
    body = re.sub(r"^( *)(```|~~~).*?^ *\2 *$", "", text, flags=re.MULTILINE | re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    prose: list[str] = []
    cells: list[str] = []
    block: list[str] = []

    def end_block() -> None:
        prose.extend(sentences(" ".join(block)))
        block.clear()

    indented_code = False
    for line in body.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("|", "#")):
            end_block()
            if stripped.startswith("|"):
                parts = [one for cell in re.split(r"(?<!\\)\|", stripped) for one in sentences(cell)]
                cells.extend(one for one in parts if count_words(one) >= MIN_CELL_WORDS)
            indented_code = False
            continue
        indented_code = (
            (indented_code or not block) and line.startswith("    ") and not re.match(r"\s*([-*]|\d+\.) ", line)
        )
        if indented_code:
            continue
        item = re.match(r"(?:[-*]|\d+\.|[a-z]\.|>) +", stripped)
        if item:
            end_block()
            stripped = stripped[item.end() :]
        block.append(stripped)
    end_block()
    return PageStatistics(name, count_words(text), tuple(prose), tuple(cells))


def pages() -> dict[str, Path]:
    """Every document by its name: `reference/trace-format` for a page of docs/, `README.md` for a page outside."""
    inside = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in documents_of(DOCS)}
    return {name: ROOT / name for name in OUTSIDE} | inside


def main(arguments: list[str]) -> None:
    show_long = "--long" in arguments
    selected = [Path(one).resolve() for one in arguments if one != "--long"]
    total = generated = 0
    print(f"{'words':>7} {'sentences':>9} {'mean':>5} {'< 30':>6}  page")
    for name, path in pages().items():
        page = statistics(name, text_of(path))
        if name in GENERATED or path in ON_DEMAND:
            generated += page.words
        elif path.is_relative_to(DOCS):
            total += page.words
        if selected and path not in selected:
            continue
        fine = page.mean <= MAX_MEAN and page.short_fraction >= MIN_SHORT_FRACTION
        mark = "" if fine else "  !"
        print(f"{page.words:7,} {len(page.prose):9} {page.mean:5.1f} {page.short_fraction:6.1%}  {name}{mark}")
        if show_long:
            print(*(f"        {count_words(one)}: {one}" for one in page.long), sep="\n")
    print(f"{total:7,} words of docs/ by hand, {generated:,} in generated pages")


if __name__ == "__main__":
    main(sys.argv[1:])
