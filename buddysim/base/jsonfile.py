"""Results as JSON: an object by scheme name, the keys sorted, the same bytes for the same results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from buddysim.base.output import write_text


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
        print_utf8(text)
    else:
        write_text(path, text)


def print_utf8(text: str) -> None:
    """Writes a text to standard output as UTF-8, as a file would have it, whatever the terminal's encoding."""
    sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:  # a text stream replaces it, as in a notebook
        sys.stdout.write(text)
    else:
        raw.write(text.encode("utf-8", "backslashreplace"))
