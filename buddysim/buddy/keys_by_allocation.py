"""Keys of allocations that are equal in every run of a program: name and order, never the address.

A capture names an allocation by a kernel argument, a call site or a tensor. An allocator chooses other addresses in the
next run. An address in a name (importers write ``copied 0x7f..``) is therefore no part of the key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.trace import Allocation


OrdinalName = tuple[str, int]
_ADDRESS = re.compile(r"\s*(?<![0-9a-z])0x([0-9a-f]+)(?![0-9a-z])", re.IGNORECASE)


def ordinal_names(allocations: Iterable[Allocation]) -> dict[int, OrdinalName]:
    """Return for each allocation its name without its address, and the number of earlier allocations of that name."""
    seen: Counter[str] = Counter()
    names_by_index = {}
    for a in allocations:
        name = _without_address(a.name, a.base)
        names_by_index[a.index] = (name, seen[name])
        seen[name] += 1
    return names_by_index


def _without_address(name: str, base: int) -> str:
    return _ADDRESS.sub(lambda match: "" if int(match[1], 16) == base else match[0], name)


def allocation_keys(allocations: Iterable[Allocation]) -> dict[int, str]:
    """Return a unique text for each allocation, by index: its name; ``name#1``, ``name#2``, .. where it repeats."""
    names_by_index = ordinal_names(allocations)
    names = Counter(name for name, _ in names_by_index.values())
    keys: dict[int, str] = {}
    taken: set[str] = set()
    for index, (name, order) in names_by_index.items():
        key = f"{name}#{order + 1}" if names[name] > 1 else name
        while key in taken:
            key += f"#{index}"
        taken.add(key)
        keys[index] = key
    return keys
