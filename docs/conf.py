"""The site of these documents. ``make docs`` builds it into out/site."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT))

import buddysim  # noqa: E402
from tools.write_reference import write_pages  # noqa: E402

project = "buddysim"
author = copyright = "the buddysim developers"
release = version = buddysim.__version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["examples/**"]
#: Pages of documents that lie outside of docs/.
CARRIED_OVER = {
    "site/readme": "README.md",
    "site/contributing": "CONTRIBUTING.md",
    "site/changes": "CHANGELOG.md",
    "site/examples": "examples/README.md",
    "site/traces": "traces/README.md",
    "site/plots": "plots/README.md",
}
html_theme = "alabaster"
html_theme_options = {"page_width": "64em", "sidebar_width": "14em"}

myst_heading_anchors = 4
# Links to sources and data lead to files of a clone; test_commands.py checks that these are there.
suppress_warnings = ["myst.xref_missing"]

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False


def carry_over(app: object, page: str, source: list[str]) -> None:
    """Puts documents from outside docs/ into their pages; links to and in these lead to the site's pages."""
    if page in CARRIED_OVER:
        document = ROOT / CARRIED_OVER[page]
        text = document.read_text(encoding="utf-8")
    else:
        document, text = DOCS / f"{page}.md", source[0]
    # The site copies the images of Markdown alone.
    text = re.sub(r'<img src="([^"]+)"[^>]* alt="([^"]*)">', r"![\2](\1)", text)
    here = (DOCS / page).parent

    def led(link: re.Match[str]) -> str:
        path, anchor = link[1], link[2] or ""
        target = (document.parent / path).resolve()
        pages = {ROOT / file: DOCS / f"{name}.md" for name, file in CARRIED_OVER.items()}
        target = pages.get(target / "README.md" if target.is_dir() else target, target)
        return f"]({os.path.relpath(target, here)}{anchor})"

    source[0] = re.sub(r"\]\(((?![a-z]+:)[^)#\s]+)(#[^)\s]*)?\)", led, text)
    if page == root_doc:
        source[0] = "".join(with_menu(section) for section in re.split(r"^(?=## )", source[0], flags=re.MULTILINE))


def with_menu(section: str) -> str:
    """Return a section of the index with a menu of the pages that it links."""
    pages = dict.fromkeys(re.findall(r"\]\(([\w/-]+)\.md\)", section))
    caption = section.splitlines()[0].lstrip("# ")
    return f"{section}\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n\n"


def write_made_pages(app: object, config: object) -> None:
    """Write the pages made from code, and an empty page for each document outside docs/, which `carry_over` fills."""
    write_pages()
    (DOCS / "site").mkdir(exist_ok=True)
    for page in CARRIED_OVER:
        (DOCS / f"{page}.md").write_text("")


def setup(app: object) -> None:
    """Called by Sphinx."""
    app.connect("config-inited", write_made_pages)  # type: ignore[attr-defined]
    app.connect("source-read", carry_over)  # type: ignore[attr-defined]
