"""Write how many lines each folder has, at the end of docs/developers/architecture.md: `python -m tools.write_lines`.

A number falls with its folder, and rises only where a reason is given: `python -m tools.write_lines FOLDER REASON`.
`tests/test_growth.py` fails where a folder is over a tenth larger than its number.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "developers" / "architecture.md"
#: Outside the package.
OTHERS = ("tests", "tools", "benchmarks")
SUFFIXES = {".py", ".pyx", ".pxd", ".pyi", ".c", ".cpp", ".h", ".S", ".cl", ".cu", ".js", ".css", ".html"}
HEAD = "| folder | lines | raised because |\n|---|--:|---|\n"
ROW = re.compile(r"^\| `(?P<folder>\w+)` \| (?P<lines>[\d,]+) \| (?P<reason>.*) \|$", re.M)


def counted(root: Path = ROOT) -> dict[str, int]:
    """Return the lines of each folder of the package, and of others; without what Cython writes next to its sources."""
    folders = {path.parent.name: path.parent for path in sorted((root / "buddysim").glob("*/__init__.py"))}
    folders |= {name: root / name for name in OTHERS}
    return {
        name: sum(
            path.read_bytes().count(b"\n")
            for path in folder.rglob("*")
            if path.suffix in SUFFIXES and not (path.suffix in (".c", ".html") and path.with_suffix(".pyx").exists())
        )
        for name, folder in folders.items()
    }


def noted(text: str) -> dict[str, tuple[int, str]]:
    """Return the number of each folder in the document, and why it was raised."""
    rows = ROW.finditer(text[text.index(HEAD) :])
    return {row["folder"]: (int(row["lines"].replace(",", "")), row["reason"]) for row in rows}


def rewritten(text: str, lines: Mapping[str, int], reasons: Mapping[str, str]) -> str:
    """Return the document with the numbers that are smaller now, and those that `reasons` raises."""
    before = noted(text)
    rows = []
    for name, count in lines.items():
        number, reason = before.get(name, (count, "-"))
        if name in reasons:
            number, reason = count, reasons[name]
        rows.append(f"| `{name}` | {min(number, count):,} | {reason} |\n")
    return text[: text.index(HEAD)] + HEAD + "".join(rows)


def main(arguments: list[str]) -> int:
    """Write the table."""
    lines = counted()
    if len(arguments) not in (0, 2) or (arguments and arguments[0] not in lines):
        print("usage: python -m tools.write_lines [FOLDER REASON]", file=sys.stderr)
        return 2
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(rewritten(text, lines, dict([arguments] if arguments else [])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
