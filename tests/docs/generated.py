"""Texts of documents: of pages that are written from code, what the code writes, whatever lies in docs/."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tools.write_reference import DOCS, PAGES, SLOW

GENERATED = {DOCS / name: name for name in PAGES}
#: Quick tests don't read these: the site's test does.
LONG = {DOCS / name for name in SLOW}


@cache
def page(name: str) -> str:
    """Return a generated page by its path in docs/."""
    return PAGES[name]()


def exists(path: Path) -> bool:
    """Whether a document, or another file, is in the repository or generated."""
    return path in GENERATED or path.exists()


def text_of(path: Path) -> str:
    """Return a document's text."""
    return page(GENERATED[path]) if path in GENERATED else path.read_text(encoding="utf-8")


def documents_of(folder: Path) -> list[Path]:
    """Return the documents of a folder of docs/, with those that are generated, sorted."""
    stored = {path for path in folder.rglob("*.md") if "site" not in path.relative_to(DOCS).parts}
    return sorted(stored | {path for path in GENERATED if path.is_relative_to(folder)})
