"""The site of the documents: it builds, without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.generated import documents_of

ROOT = Path(__file__).parents[2]


def test_the_contents_name_every_page() -> None:
    """A page outside the contents is reached by a search only."""
    contents = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    documents = [path.relative_to(ROOT / "docs") for path in documents_of(ROOT / "docs")]
    pages = [path.with_suffix("").as_posix() for path in documents]
    assert sorted(re.findall(r"\]\(([\w/-]+)\.md\)", contents)) == sorted({*pages} - {"index"})


def broken_links(site: Path) -> list[str]:
    """Links within a site that lead to no file, or to no anchor in it."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    broken = []
    for page, text in pages.items():
        for link in re.findall(r'(?:href|src)="(?!\w+:)([^"]+)"', text):
            path, _, anchor = link.partition("#")
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            if not target.exists() or (anchor and target in pages and f'id="{anchor}"' not in pages[target]):
                broken.append(f"{page.name}: {link}")
    return broken


def test_broken_links_of_a_site_are_found(tmp_path: Path) -> None:
    """The check below sees an example of each fault."""
    (tmp_path / "a.html").write_text('<p id="x"><a href="#x"><a href="b.html?v=1#y"><a href="https://e.org">')
    (tmp_path / "b.html").write_text('<p id="y"><a href="a.html#gone"><img src="gone.png">')
    assert broken_links(tmp_path) == ["b.html: a.html#gone", "b.html: gone.png"]


@pytest.mark.slow
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx isn't installed: pip install 'buddysim[docs]'")
    pytest.importorskip("myst_parser", reason="myst-parser isn't installed: pip install 'buddysim[docs]'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(ROOT / "docs"), str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "reference" / "python.html").read_text(encoding="utf-8")
    text = " ".join(re.sub("<[^>]+>", "", page).split())
    assert "buddysim.simulate" in text
    assert "threshold Buddy Threshold of that profile, the largest fraction of entries" in text
    assert 'class="xref myst"' not in (tmp_path / "site" / "index.html").read_text(
        encoding="utf-8"
    )  # a link to nothing
    assert not broken_links(tmp_path / "site")
