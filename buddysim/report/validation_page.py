"""Pages of comparisons: a head, and a part for each comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from buddysim.base.markdown import wrap_markdown
from buddysim.base.textfile import read_text
from buddysim.validation import REGISTRY

LARGEST_PAGE = 2**22
TITLES = {
    "accelsim": "Accel-Sim",
    "dram": "Device memory: DRAMsim3",
    "hardware": "Real GPUs: curves and kernels",
    "llm": "Memory of training language models",
    "unified-memory": "Unified Memory on a GTX 1080 Ti",
}
"""Title of each page; of other pages, their name."""
_HEAD = """# {title}

Written by `python -m buddysim validate -o docs/validation`; tests compare it. Rules: [method](method.md).
All quantities: [validation.csv](validation.csv).
"""
_PART = re.compile(r"<!-- comparison: ([\w-]+) -->")


def merged_page(existing: Path, page: str, parts: Mapping[str, str]) -> str:
    """Return a page with these parts, and with the other parts of the existing page.

    Parameters
    ----------
    existing : file of the page, which may not exist
    page : its name
    parts : Markdown of each part; comparisons come in the order of the registry, other parts after them
    """
    stored = parts_of(read_text(existing, "page of comparisons", LARGEST_PAGE)) if existing.exists() else {}
    every = {**stored, **parts}
    names = [*(name for name in REGISTRY.names() if name in every), *(name for name in every if name not in REGISTRY)]
    blocks = (f"\n<!-- comparison: {name} -->\n\n{wrap_markdown(every[name].strip())}\n" for name in names)
    return wrap_markdown(_HEAD.format(title=TITLES.get(page, page))).rstrip() + "\n" + "".join(blocks)


def parts_of(text: str) -> dict[str, str]:
    """Return the parts of a page, by comparison; empty if it is no such page."""
    parts = _PART.split(text)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
