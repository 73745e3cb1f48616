"""Operators whose time follows from a rule of their kind; all others are generic: bytes and FLOPs as recorded."""

from __future__ import annotations

from importlib import resources

from buddysim.base.textfile import parse_toml

_FILE = resources.files("buddysim.training.networks.captured") / "known_operators.toml"
KNOWN: frozenset[str] = frozenset(
    name for names in parse_toml(_FILE.read_text(encoding="utf-8")).values() for name in names
)


def is_generic(name: str) -> bool:
    """Whether an operator's time follows from its bytes and FLOPs alone, by its name with ``_`` for in place."""
    return name not in KNOWN and name.removesuffix("_") not in KNOWN
