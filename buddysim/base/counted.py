"""Numbers of things in sentences."""

from __future__ import annotations


def counted(number: int, thing: str, things: str = "") -> str:
    """Return a number with its noun: ``1 kernel``, ``2,048 kernels``; `things` is a plural without ``s``."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"
