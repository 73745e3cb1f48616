"""Finds compressors by name: each is one module of this folder."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError

#: What holds data: any C-contiguous buffer (an ``array.array`` or a ``mmap`` too, which this type doesn't say).
Data: TypeAlias = bytes | bytearray | memoryview | NDArray[Any]


class Compressor(Protocol):
    """What the module of a compressor has. It is given contiguous bytes and only options that it names.

    Data are entries of 128 B, or a tensor's windows where the option `window` is given; a compressor of tensors alone
    says so by ``TENSORS_ONLY = True``. Windows may hold any number of whole words, which the compressor checks.
    """

    #: Option names and their defaults; the type of a default is the type of the option.
    OPTIONS: Mapping[str, object]

    def compressed_bits(self, data: NDArray[np.uint8], **options: Any) -> NDArray[np.uint32]:
        """Size in bits of every 128 B entry (or window) of `data`."""

    def compress(self, data: NDArray[np.uint8], **options: Any) -> bytes:
        """The bits of `data`."""

    def decompress(self, payload: NDArray[np.uint8], nbytes: int, **options: Any) -> bytes:
        """What `compress` was given; BuddysimError for anything that `compress` can't give."""


_VERBS = ("OPTIONS", "compressed_bits", "compress", "decompress")


def algorithms() -> list[str]:
    """Names of the compressors, in alphabetical order."""
    return [name for name in _modules() if _is_compressor(import_module(f"buddysim.compress.{name}"))]


def entry_algorithms() -> list[str]:
    """Names of the compressors of 128 B memory entries: all but those of tensors alone."""
    return [name for name in algorithms() if not getattr(find(name, {}), "TENSORS_ONLY", False)]


def find(algorithm: str, options: Mapping[str, object]) -> Compressor:
    """The compressor of that name; its options are checked."""
    module = import_module(f"buddysim.compress.{algorithm}") if algorithm in _modules() else None
    if module is None or not _is_compressor(module):
        known = algorithms()
        raise BuddysimError(
            f"compressor {algorithm!r}: unknown, expected one of {', '.join(known)}{_nearest(str(algorithm), known)}"
        )
    compressor = cast(Compressor, module)
    for name, value in options.items():
        if name not in compressor.OPTIONS:
            known = sorted(compressor.OPTIONS)
            raise BuddysimError(
                f"{algorithm}: option {name!r}: unknown, expected {_one_of(known)}{_nearest(name, known)}"
            )
        expected = type(compressor.OPTIONS[name])
        if type(value) is not expected:
            raise BuddysimError(f"{algorithm}: option {name!r}: {value!r}: expected {expected.__name__}")
    return compressor


def in_windows(compressor: Compressor, options: Mapping[str, object]) -> bool:
    """Whether data are the windows of a tensor rather than entries of 128 B."""
    return "window" in options or getattr(compressor, "TENSORS_ONLY", False)


def _modules() -> list[str]:
    package = import_module("buddysim.compress")
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith(("_", "naive_")))


def _is_compressor(module: object) -> bool:
    return all(hasattr(module, verb) for verb in _VERBS)


def _one_of(known: list[str]) -> str:
    return f"one of {', '.join(known)}" if known else "none"


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    return f" (nearest: {found[0]})" if found else ""
