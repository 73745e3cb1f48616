"""Settings of PyTorch's CUDA caching allocator, as the environment variable ``PYTORCH_CUDA_ALLOC_CONF`` writes them.

Names, bounds and defaults are those of PyTorch 2.13: ``c10/core/AllocatorConfig.h`` and
``c10/cuda/CUDAAllocatorConfig.h``. Some settings change the host's pinned memory, locks or CUDA graphs, not device
memory; these are accepted and have no effect here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

MIB = 1 << 20
#: Sizes of 1 MiB to 64 GiB have a number of divisions each, by power of two; the last one counts for larger sizes too.
INTERVALS = 16
_LARGEST_MB = 1 << 30
_TOKEN = re.compile(r"\s*([\[\],:]|[^\[\],:]+)")
_NO_EFFECT = frozenset(
    (
        "release_lock_on_cudamalloc",
        "release_lock_on_hipmalloc",
        "graph_capture_record_stream_reuse",
        "throw_on_cudamalloc_oom",
        "pinned_use_cuda_host_register",
        "pinned_use_hip_host_register",
        "pinned_use_background_threads",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_free_catch_all",
        "pinned_max_power2_size_mb",
        "pinned_max_round_threshold_mb",
        "pinned_max_cached_size_mb",
    )
)


@dataclass(frozen=True)
class AllocatorSettings:
    """Settings of the caching allocator.

    Attributes
    ----------
    max_split_size : blocks of at least so many bytes are never split; None: all are
    max_non_split_rounding : by how many bytes such a block may exceed a request that it serves; None: by those of
        `large_segment_size`
    garbage_collection_threshold : fraction of the memory in use above which cached blocks are given back; 0: never
    roundup_power2_divisions : parts of the range between two powers of two to which requests are rounded up, for 1 MiB,
        2 MiB, .. 32 GiB; 0: requests are rounded to 512 B alone
    expandable_segments : one segment that grows, instead of one for each request to the driver
    large_segment_size : bytes of a segment for requests of 1 to 10 MiB, and of the pages of an expandable one
    per_process_memory_fraction : fraction of the GPU's memory that the allocator may reserve
    """

    max_split_size: int | None = None
    max_non_split_rounding: int | None = None
    garbage_collection_threshold: float = 0.0
    roundup_power2_divisions: tuple[int, ...] = (0,) * INTERVALS
    expandable_segments: bool = False
    large_segment_size: int = 20 * MIB
    per_process_memory_fraction: float = 1.0

    def __post_init__(self) -> None:
        least = self.large_segment_size
        for name in ("max_split_size", "max_non_split_rounding"):
            value = getattr(self, name)
            if value is not None and value < least:
                raise BuddysimError(
                    f"allocator setting {_NAMES[name]}: {value // MIB}: expected at least the size of large segments, "
                    f"{least // MIB} (MiB)"
                )

    @classmethod
    def parse(cls, text: str) -> AllocatorSettings:
        """Return the settings of a text such as ``"expandable_segments:True,max_split_size_mb:128"``.

        Raises
        ------
        BuddysimError
            a name that PyTorch doesn't have, a wrong value, or another allocator than PyTorch's own
        """
        tokens = [token.strip() for token in _TOKEN.findall(text)]
        values: dict[str, Any] = {}
        for name, value in _settings(tokens):
            if name in _NO_EFFECT:
                continue
            if name not in _READERS:
                known = sorted((*_READERS, *_NO_EFFECT))
                raise BuddysimError(
                    f"allocator setting {shortened(name)}: expected one of {', '.join(_READERS)}{hint(name, known)}"
                )
            field, read = _READERS[name]
            try:
                result = read(value)
            except ValueError as error:
                raise BuddysimError(
                    f"allocator setting {name}: {shortened(''.join(value))}: expected {error}"
                ) from None
            if field:
                values[field] = result
        return cls(**values)

    def text(self) -> str:
        """The settings that differ from the defaults, as `parse` reads them; empty for the defaults."""
        written = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default:
                written.append(f"{_NAMES[one.name]}:{_written(one.name, value)}")
        return ",".join(written)


def _settings(tokens: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each setting's name and the tokens of its value."""
    index = 0
    while index < len(tokens):
        name = tokens[index]
        if index + 2 >= len(tokens) or tokens[index + 1] != ":":
            raise BuddysimError(f"allocator setting {shortened(name)}: expected NAME:VALUE")
        index += 2
        start = index
        if tokens[index] == "[":
            while index < len(tokens) and tokens[index] != "]":
                index += 1
        yield name, tokens[start : index + 1]
        index += 1
        if index < len(tokens):
            if tokens[index] != ",":
                raise BuddysimError(f"allocator setting {shortened(name)}: expected a comma after its value")
            index += 1


def _megabytes(least: int) -> Callable[[list[str]], int]:
    def read(tokens: list[str]) -> int:
        expected = f"an integer of at least {least} (MiB)"
        value = _integer(tokens, expected)
        if not least <= value <= _LARGEST_MB:
            raise ValueError(expected)
        return value * MIB

    return read


def _integer(tokens: list[str], expected: str) -> int:
    if len(tokens) != 1 or not (tokens[0].isascii() and tokens[0].isdecimal()) or len(tokens[0]) > 20:
        raise ValueError(expected)
    return int(tokens[0])


def _fraction(tokens: list[str]) -> float:
    expected = "a number above 0 and below 1"
    try:
        value = float(tokens[0]) if len(tokens) == 1 else 0.0
    except ValueError:
        raise ValueError(expected) from None
    if not 0 < value < 1:
        raise ValueError(expected)
    return value


def _whole_fraction(tokens: list[str]) -> float:
    return 1.0 if tokens in (["1"], ["1.0"]) else _fraction(tokens)


def _boolean(tokens: list[str]) -> bool:
    if tokens not in (["True"], ["False"]):
        raise ValueError("True or False")
    return tokens == ["True"]


def _backend(tokens: list[str]) -> None:
    if tokens != ["native"]:
        raise ValueError("native, as CUDA's own allocator (cudaMallocAsync) is not simulated")


def _divisions(tokens: list[str]) -> tuple[int, ...]:
    """One number for all sizes, or ``[256:1,512:2,>:4]``: sizes in MiB, the first one for smaller sizes too.

    What follows `>` counts for sizes above the last one.
    """
    expected = "a power of two, or [SIZE:DIVISIONS,..,>:DIVISIONS] with powers of two"
    if tokens[0] != "[":
        return (_power_of_two(tokens, expected),) * INTERVALS
    divisions, last = [0] * INTERVALS, 0
    for position, entry in enumerate(_entries(tokens[1:-1], expected)):
        value = 0 if entry[2] == "0" else _power_of_two([entry[2]], expected)
        if entry[0] == ">":
            divisions[last + 1 :] = [value] * (INTERVALS - last - 1)
            continue
        last = min(_power_of_two([entry[0]], expected).bit_length() - 1, INTERVALS - 1)
        if position == 0:
            divisions[:last] = [value] * last
        divisions[last] = value
    return tuple(divisions)


def _entries(tokens: list[str], expected: str) -> list[list[str]]:
    entries = [tokens[start : start + 4] for start in range(0, len(tokens), 4)]
    whole = all(len(entry) == 4 and entry[3] == "," for entry in entries[:-1]) and entries and len(entries[-1]) == 3
    if not whole or any(entry[1] != ":" for entry in entries):
        raise ValueError(expected)
    return entries


def _power_of_two(tokens: list[str], expected: str) -> int:
    value = _integer(tokens, expected)
    if value < 1 or value & (value - 1):
        raise ValueError(expected)
    return value


def _written(name: str, value: Any) -> str:
    if name == "roundup_power2_divisions":
        return "[" + ",".join(f"{1 << power}:{each}" for power, each in enumerate(value)) + "]"
    return str(value // MIB if _NAMES[name].endswith("_mb") else value)


#: Field and reader by the name that the environment variable has.
_READERS: dict[str, tuple[str, Callable[[list[str]], Any]]] = {
    "max_split_size_mb": ("max_split_size", _megabytes(11)),
    "max_non_split_rounding_mb": ("max_non_split_rounding", _megabytes(11)),
    "garbage_collection_threshold": ("garbage_collection_threshold", _fraction),
    "roundup_power2_divisions": ("roundup_power2_divisions", _divisions),
    "expandable_segments": ("expandable_segments", _boolean),
    "large_segment_size_mb": ("large_segment_size", _megabytes(11)),
    "per_process_memory_fraction": ("per_process_memory_fraction", _whole_fraction),
    "backend": ("", _backend),
}
_NAMES = {field: name for name, (field, _) in _READERS.items() if field}
