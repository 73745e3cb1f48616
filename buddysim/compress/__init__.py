"""Compressors of 128 B memory entries and of tensors, and the size classes that compressed entries are stored in.

A compressor is one module of this folder, a plug-in (`registry.Compressor` says what it has), or a function that a
program registers (`register`); docs/reference/compressors.md defines each.
The public names load on first use: what lists compressors or their layouts needs no arrays.
Every function may be called from several threads at once; the heavy parts release the GIL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.compress.compressors import algorithms
    from buddysim.compress.entry_compression import DEFAULT, compress, compressed_bits, decompress, entry_classes
    from buddysim.compress.functions import register
    from buddysim.compress.size_classes import (
        ENTRY_BYTES,
        SECTOR_BYTES,
        SECTOR_CLASSES,
        SECTORS_OF_CLASS,
        STUDY_CLASSES,
        UNKNOWN_CLASS,
        sectors_needed,
        size_class,
    )

__all__ = [
    "DEFAULT",
    "ENTRY_BYTES",
    "SECTORS_OF_CLASS",
    "SECTOR_BYTES",
    "SECTOR_CLASSES",
    "STUDY_CLASSES",
    "UNKNOWN_CLASS",
    "algorithms",
    "compress",
    "compressed_bits",
    "decompress",
    "entry_classes",
    "register",
    "sectors_needed",
    "size_class",
]

_HOMES = {
    "algorithms": "compressors",
    "register": "functions",
    **dict.fromkeys(("DEFAULT", "compress", "compressed_bits", "decompress", "entry_classes"), "entry_compression"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'size_classes')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
