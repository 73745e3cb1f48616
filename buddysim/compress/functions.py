"""Compressors that are functions of a user's program, registered while it runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base import plugins
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.compress.compressors import REGISTRY
from buddysim.compress.size_classes import ENTRY_BYTES

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def register(
    name: str,
    compressed_bits: Callable[..., Any],
    *,
    compress: Callable[..., bytes] | None = None,
    decompress: Callable[..., bytes] | None = None,
) -> None:
    """Make a function a compressor of 128 B entries, which this process then finds by its name.

    Parameters
    ----------
    name : of the compressor: small letters, digits, ``-``
    compressed_bits : given whole entries (uint8 array, contiguous), gives the size of each in bits; its
        keyword-only parameters with defaults are the compressor's options
    compress, decompress : both directions, as `buddysim.compress.compressors.Compressor` says; without them the
        compressor gives sizes only, which is all that replays and profiles use

    Raises
    ------
    BuddysimError
        for a name that is taken or no name, something that can't be called, or a parameter without a default

    Notes
    -----
    It is known to this process alone. A file, as a plug-in (docs/how-to/add-a-plugin.md), is known to commands and to
    the workers of sweeps too.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BuddysimError(f"compressor {shortened(name)}: expected a name of small letters, digits and single -")
    if name in REGISTRY:
        raise BuddysimError(f"compressor {name!r}: there is one of that name already")
    functions = [each for each in (compressed_bits, compress, decompress) if each is not None]
    if not all(callable(each) for each in functions):
        raise BuddysimError(f"compressor {name!r}: expected functions")
    module = ModuleType(name, inspect.getdoc(compressed_bits) or f"sizes by {compressed_bits!r}")
    module.OPTIONS = _options(name, compressed_bits)  # type: ignore[attr-defined]
    module.compressed_bits = _checked(name, compressed_bits)  # type: ignore[attr-defined]
    module.compress = compress or _sizes_only(name)  # type: ignore[attr-defined]
    module.decompress = decompress or _sizes_only(name)  # type: ignore[attr-defined]
    plugins.add(module, "\n".join(_text(each) for each in functions))


def _options(name: str, function: Callable[..., Any]) -> dict[str, object]:
    """The keyword-only parameters of a function, with their defaults."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for parameter in parameters:
        if parameter.default is parameter.empty:
            raise BuddysimError(f"compressor {name!r}: parameter {parameter.name!r}: expected a default")
    return {parameter.name: parameter.default for parameter in parameters}


def _checked(name: str, function: Callable[..., Any]) -> Callable[..., NDArray[np.uint32]]:
    """The function, and a BuddysimError where it doesn't give a size for every entry."""

    def compressed_bits(data: NDArray[np.uint8], **options: Any) -> NDArray[np.uint32]:
        bits, entries = np.asarray(function(data, **options)), len(data) // ENTRY_BYTES
        if bits.shape != (entries,) or (entries and (bits.dtype.kind not in "iu" or bits.min() < 0)):
            raise BuddysimError(
                f"{name}: sizes of {entries} entries: got {bits.dtype} of shape {bits.shape}: "
                f"expected {entries} integers from 0"
            )
        return bits.astype(np.uint32)

    return compressed_bits


def _sizes_only(name: str) -> Callable[..., bytes]:
    def refuse(data: NDArray[np.uint8], *rest: object, **options: object) -> bytes:
        raise BuddysimError(f"{name}: gives sizes only: expected one registered with compress and decompress")

    return refuse


def _text(function: Callable[..., Any]) -> str:
    """Return the source of a function, or its name if there is none, for a result's provenance."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return repr(getattr(function, "__qualname__", function))
