"""Whether a tag, CITATION.cff and CHANGELOG.md name the version of the package.

python tools/check_release.py v1.0.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problems(tag: str | None, root: Path = ROOT) -> list[str]:
    """Return what doesn't name the version of ``buddysim/__init__.py``; `tag`: None between releases."""

    def first(name: str, pattern: str) -> str:
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        return match[1] if match else "none"

    version = first("buddysim/__init__.py", r'^__version__ = "(.*)"$')
    named = {
        "CITATION.cff": first("CITATION.cff", r"^version: (.*)$"),
        "CHANGELOG.md": first("CHANGELOG.md", r"^## (\d.*)$"),
    }
    if tag is not None:
        named |= {"the tag": tag.removeprefix("v"), "CHANGELOG.md, at its top": first("CHANGELOG.md", r"^## (.*)$")}
    return [f"{name}: {said}: expected {version}" for name, said in named.items() if said != version]


if __name__ == "__main__":
    wrong = problems(*sys.argv[1:2]) if len(sys.argv) == 2 else ["expected one tag, such as v1.0.0"]
    for line in wrong:
        print(f"buddysim: error: {line}", file=sys.stderr)
    sys.exit(2 if wrong else 0)
