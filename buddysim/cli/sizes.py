"""Sizes as options say them: ``4 GiB``."""

from __future__ import annotations


def size_bytes(option: str, text: str) -> int:
    """Return a size in bytes; a BuddysimError that names the option where it is none, or nothing."""
    from buddysim.base.errors import BuddysimError
    from buddysim.machine.units import parse_size

    try:
        return parse_size(text, 1)
    except ValueError as error:
        raise BuddysimError(f"{option}: {error}") from None
