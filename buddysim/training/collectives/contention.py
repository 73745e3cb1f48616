"""What kernels lose while GPUs gather or reduce: collectives take multiprocessors and bandwidth of memory from them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from importlib import resources

from buddysim.base.textfile import parse_toml

_FITTED = resources.files("buddysim.training.cost") / "data" / "iterations" / "fitted.toml"


@cache
def kernels_left() -> Fraction:
    """Fraction of their rate that kernels have left next to a collective, fitted to steps of 8 A100 and 8 H100."""
    lost = parse_toml(_FITTED.read_text(encoding="utf-8"))["communication"]
    return 1 - Fraction(str(lost))
