"""Print the lowest version of each requirement of pyproject.toml, for pip: `python tools/lowest_versions.py EXTRA ...`.

The requirements of a run and of a build, and those of the extras.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lowest(extras: Sequence[str] = ()) -> Iterator[str]:
    """Yield the requirements, each with its lowest version: ``numpy==2``."""
    content = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    optional = content["project"]["optional-dependencies"]
    every = [*content["project"]["dependencies"], *content["build-system"]["requires"]]
    every += [requirement for extra in extras for requirement in optional[extra]]
    for requirement in dict.fromkeys(every):
        yield re.sub(r"(>=|==)([\d.]+).*", r"==\2", requirement)


if __name__ == "__main__":
    print(*dict.fromkeys(lowest(sys.argv[1:])), sep="\n")
