"""Sizes as options say them: ``4 GiB``."""

from __future__ import annotations


def size_bytes(option: str, text: str) -> int:
    """Return a size in bytes; a BuddysimError that names the option where it is none, or nothing."""
    from buddysim.base.errors import BuddysimError
    from buddysim.machine.units import parse_size

    try:
        size = parse_size(text)
    except ValueError as error:
        raise BuddysimError(f"{option}: {error}") from None
    if size < 1:
        raise BuddysimError(f"{option}: {text}: expected more than nothing")
    return size
