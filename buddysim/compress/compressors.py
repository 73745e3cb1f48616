"""Finds compressors by name: each is one module of this folder, or a plug-in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.registry import Registry, modules_with

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Data: any C-contiguous buffer (also an ``array.array`` or a ``mmap``, which this type can't express).
Data: TypeAlias = "bytes | bytearray | memoryview | NDArray[Any]"


class Compressor(Protocol):
    """The contract of a compressor's module. Its functions get contiguous bytes, and only options that it names.

    Data are entries of 128 B, or a tensor's windows where the option ``window`` is given. Windows may hold any number
    of whole words, which the compressor checks. Two options have one meaning for every compressor: ``window`` is the
    number of bytes that are compressed on their own (a compressor that has it takes tensors), ``word_bits`` the size of
    the tensor's elements.

    A module may also state, and everything that uses compressors then follows it:

    ``ORDER``
        its position in lists
    ``TENSORS_ONLY = True``
        it takes windows of tensors alone: it has no sizes of entries
    ``REFERENCE = "package.module"``
        its reference model, which has the same three functions in plain Python, over bytes (sizes are a list)
    ``PAYLOAD_OPTIONS``
        options with which sizes have all bits of a payload, where by default they leave out some that a memory system
        keeps elsewhere
    ``MASK_BITS_PER_WORD``
        bits per word of the data that only mark zeros; ratios are also given without them
    ``fraction_of_density(density, masks)``
        bytes of the payload over those of the data, words of 32 bits, if these follow exactly from the fraction of
        nonzero words; ``masks=False`` leaves out the mask bits
    ``options_from_sample(blocks, **options)``
        the codes depend on a profile of the data: the options that hold that of some data, given in parts; without them
        every call profiles its own data
    ``available()``
        False where a library that it needs isn't installed; it is then not used unless named
    ``provenance()``
        what else its codes depend on (a library's version, the variant of the algorithm), for results
    """

    #: Option names and their defaults; the type of a default is the type of the option.
    OPTIONS: Mapping[str, object]

    def compressed_bits(self, data: NDArray[np.uint8], **options: Any) -> NDArray[np.uint32]:
        """Size in bits of every 128 B entry (or window) of `data`."""

    def compress(self, data: NDArray[np.uint8], **options: Any) -> bytes:
        """The bits of `data`."""

    def decompress(self, payload: NDArray[np.uint8], nbytes: int, **options: Any) -> bytes:
        """Return the data of a payload; BuddysimError for a payload that `compress` cannot return."""


_CONTRACT = ("OPTIONS", "compressed_bits", "compress", "decompress")
_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})

REGISTRY: Registry[Any] = Registry("compressor", "buddysim.compress", _CONTRACT, modules_with(*_CONTRACT))


def algorithms() -> list[str]:
    """Return the names of the compressors."""
    return list(REGISTRY.names())


def entry_algorithms() -> list[str]:
    """Names of the compressors of 128 B memory entries."""
    return [name for name, compressor in REGISTRY.items() if not in_windows(compressor, _NO_OPTIONS)]


def tensor_algorithms() -> list[str]:
    """Names of the compressors of tensors whose libraries are installed."""
    return [
        name
        for name, compressor in REGISTRY.items()
        if "window" in compressor.OPTIONS and (not hasattr(compressor, "available") or compressor.available())
    ]


def size_map_algorithms() -> list[str]:
    """Names of the compressors of entries that need no profile: a capture's size maps are written as its data come."""
    return [name for name in entry_algorithms() if not hasattr(find(name), "options_from_sample")]


def find(algorithm: str, options: Mapping[str, object] = _NO_OPTIONS) -> Compressor:
    """The compressor of that name.

    Raises
    ------
    BuddysimError
        for an unknown name, an option that it doesn't have, or an option of another type
    """
    compressor: Compressor = REGISTRY.find(algorithm)
    for name, value in options.items():
        if name not in compressor.OPTIONS:
            known = sorted(compressor.OPTIONS)
            expected = f"one of {', '.join(known)}" if known else "none"
            raise BuddysimError(
                f"{algorithm}: option {shortened(name)}: unknown, expected {expected}{hint(name, known)}"
            )
        kind = type(compressor.OPTIONS[name])
        if type(value) is not kind:
            raise BuddysimError(f"{algorithm}: option {name!r}: {shortened(value)}: expected {kind.__name__}")
    return compressor


def find_for_entries(algorithm: str, options: Mapping[str, object] = _NO_OPTIONS) -> Compressor:
    """As `find`, and a BuddysimError where the compressor has no sizes of 128 B entries with these options."""
    compressor = find(algorithm, options)
    if in_windows(compressor, options):
        raise BuddysimError(
            f"{algorithm}: size classes are of entries of 128 B, not of a tensor's windows: "
            f"expected one of {', '.join(entry_algorithms())}, without a window"
        )
    return compressor


def joined(algorithm: str) -> list[str]:
    """The compressors of ``bdi+fpc``: of each entry the smaller size counts; one name is that compressor alone."""
    return algorithm.split("+")


def find_for_size_maps(algorithm: str) -> Compressor:
    """As `find_for_entries`, and a BuddysimError for a compressor that has to see all data before it can compress."""
    compressor = find_for_entries(algorithm)
    if algorithm not in size_map_algorithms():
        raise BuddysimError(
            f"{algorithm}: needs a profile of all data, which are not there before the size maps are written: "
            f"expected one of {', '.join(size_map_algorithms())}"
        )
    return compressor


def profile_options(compressor: Compressor, blocks: Iterable[NDArray[np.uint8]]) -> dict[str, object]:
    """The options that hold a profile of some data, for a compressor that needs one; none for any other."""
    sample = getattr(compressor, "options_from_sample", None)
    return dict(sample(blocks)) if sample else {}


def in_windows(compressor: Compressor, options: Mapping[str, object]) -> bool:
    """Whether data are the windows of a tensor rather than entries of 128 B."""
    return "window" in options or getattr(compressor, "TENSORS_ONLY", False)
