"""Results as JSON: an object by scheme name, the keys sorted, the same bytes for the same results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buddysim.base.atomic import write_whole


def to_json(results: Mapping[str, Mapping[str, Any]]) -> str:
    """``{"buddy": {...}, "ideal": {...}}`` as text.

    Parameters
    ----------
    results : what `SchemeResult.to_dict` gives, by scheme name
    """
    return json.dumps(results, sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def write_json(path: str | os.PathLike[str], results: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the results to a file, or to standard output where `path` is ``-``."""
    text = to_json(results)
    if os.fspath(path) == "-":
        sys.stdout.write(text)
        return

    def write(unfinished: Path) -> None:
        unfinished.write_text(text, encoding="utf-8")

    write_whole(path, write)
