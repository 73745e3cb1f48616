"""What a reader must know before believing a result: at most four caveats, and all assumptions where requested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.report.screen import Part, make_printable

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]

MAX_CAVEATS = 4
"""Caveats of a screen, the one included that says how many assumptions there are."""


def caveat_section(texts: list[str], n_assumptions: int) -> list[Part]:
    """Return a section of at most four caveats.

    Parameters
    ----------
    texts : caveats, the most important first
    n_assumptions : number of assumptions behind `--assumptions`
    """
    shown = texts[: MAX_CAVEATS - bool(n_assumptions)]
    if n_assumptions:
        count = f"{n_assumptions} assumption{'s' if n_assumptions != 1 else ''}"
        shown.append(f"{count} in all: --assumptions, or provenance.assumptions in --json.")
    return ["", "read this first", *(make_printable(f"- {text}") for text in shown)] if shown else []


def assumption_parts(results: Results) -> list[Part]:
    """Return every assumption, numbered, with the schemes to which it applies if not to all."""
    return ["", "assumptions", *assumption_lines(results)]


def assumption_lines(results: Results) -> list[str]:
    """Return every assumption as a numbered line."""
    schemes_of: dict[tuple[str, str], list[str]] = {}
    for scheme, result in results.items():
        for assumption in result["provenance"]["assumptions"].items():
            schemes_of.setdefault(assumption, []).append(scheme)
    lines = []
    for number, ((subject, text), schemes) in enumerate(schemes_of.items(), 1):
        only = "" if len(schemes) == len(results) else f" ({', '.join(schemes)})"
        lines.append(make_printable(f"{number}. {subject}{only}: {text}"))
    return lines
