"""Target ratios: how much of each entry an allocation keeps in device memory; and the file that holds them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from buddysim.base.atomic import write_whole
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import nearest, shortened
from buddysim.base.textfile import parse_toml, read_text
from buddysim.trace import Allocation, Trace

LARGEST_FILE = 64 * 2**20
_TABLE = "targets"


@dataclass(frozen=True, slots=True)
class Target:
    """A target ratio.

    Attributes
    ----------
    name : as people write it
    kept_sectors : 32 B sectors of an entry in device memory; 0 for 16x, which keeps 8 B
    device_bytes_per_entry : bytes of a 128 B entry in device memory
    """

    name: str
    kept_sectors: int
    device_bytes_per_entry: int


#: From the least to the most aggressive (Buddy Compression, sections 3.2 and 3.4).
ALL_TARGETS = (
    Target("1x", 4, 128),
    Target("1.33x", 3, 96),
    Target("2x", 2, 64),
    Target("4x", 1, 32),
    Target("16x", 0, 8),
)
TARGET = {target.name: target for target in ALL_TARGETS}


class Targets:
    """The target of every allocation of a trace; an allocation without one is kept whole (1x).

    Parameters
    ----------
    trace : the trace, or its allocations
    by_index : targets by allocation index
    """

    def __init__(self, trace: Trace | Sequence[Allocation], by_index: Mapping[int, Target]) -> None:
        self.allocations = list(trace if isinstance(trace, Sequence) else trace.allocations)
        self._by_index = dict(by_index)

    @classmethod
    def uniform(cls, trace: Trace | Sequence[Allocation], ratio: str) -> Targets:
        """The same target for every device allocation."""
        target = _target(ratio, "ratio")
        allocations = trace if isinstance(trace, Sequence) else trace.allocations
        return cls(allocations, {a.index: target for a in allocations if a.space == "device"})

    def of(self, allocation: int) -> Target:
        """The target of an allocation, by its index."""
        return self._by_index.get(allocation, ALL_TARGETS[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Targets) and all(self.of(a.index) == other.of(a.index) for a in self.allocations)

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, str]:
        """Ratios by the keys that the file has."""
        keys = allocation_keys(self.allocations)
        return {keys[a.index]: self.of(a.index).name for a in self.allocations if a.space == "device"}

    def save(self, path: str | os.PathLike[str], comment: str = "") -> None:
        """Writes the file, whole or not at all.

        Parameters
        ----------
        path : the file, replaced if it is there
        comment : lines for its head, for example how the targets were chosen
        """
        lines = [f"# {line}".rstrip() for line in comment.splitlines()]
        lines += [
            f"# Ratio of each device allocation: {', '.join(TARGET)}; one that isn't listed is kept whole (1x).",
            f"[{_TABLE}]",
        ]
        lines += [f"{_quoted(key)} = {_quoted(ratio)}" for key, ratio in self.to_dict().items()]
        text = "\n".join(lines) + "\n"
        write_whole(path, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))

    @classmethod
    def load(cls, path: str | os.PathLike[str], trace: Trace | Sequence[Allocation]) -> Targets:
        """Reads a file for a trace; a BuddysimError for whatever doesn't fit it."""
        allocations = list(trace if isinstance(trace, Sequence) else trace.allocations)
        where = os.fspath(path)
        content = parse_toml(read_text(path, "targets file", LARGEST_FILE), where)
        for key in content:
            if key != _TABLE:
                raise BuddysimError(f"{where}: {key!r}: unknown table, expected [{_TABLE}]")
        table = content.get(_TABLE)
        if not isinstance(table, dict):
            raise BuddysimError(f"{where}: expected a table [{_TABLE}] of allocation names and ratios")
        by_key = {key: index for index, key in allocation_keys(allocations).items()}
        host = {a.index for a in allocations if a.space == "host"}
        by_index: dict[int, Target] = {}
        for key, ratio in table.items():
            if key not in by_key:
                raise BuddysimError(f"{where}: {_unknown(key, by_key)}")
            if by_key[key] in host:
                raise BuddysimError(f"{where}: {key!r} lies in host memory: expected device allocations only")
            by_index[by_key[key]] = _target(ratio, f"{where}: {key!r}")
        return cls(allocations, by_index)


def allocation_keys(allocations: Iterable[Allocation]) -> dict[int, str]:
    """A key of its own for every allocation, by index: its name, with its base (and index) where names repeat."""
    allocations = list(allocations)
    names = Counter(a.name for a in allocations)
    with_base = Counter(f"{a.name}@{a.base:#x}" for a in allocations)
    keys: dict[int, str] = {}
    taken: set[str] = set()
    for a in allocations:
        key = a.name
        if names[key] > 1 or with_base[key]:
            key = f"{a.name}@{a.base:#x}"
            if with_base[key] > 1 or names[key]:
                key += f"#{a.index}"
        while key in taken:
            key += f"#{a.index}"
        taken.add(key)
        keys[a.index] = key
    return keys


def _unknown(key: str, keys: Iterable[str]) -> str:
    keys = list(keys)
    same_name = [name for name in keys if name.startswith(f"{key}@")]
    if same_name:
        return f"{shortened(key)}: several allocations have this name, expected {', '.join(same_name[:4])}" + (
            ", .." if len(same_name) > 4 else ""
        )
    near = nearest(key, keys)
    return f"{shortened(key)}: the trace has no such allocation" + (f" (nearest: {shortened(near)})" if near else "")


def _target(ratio: object, where: str) -> Target:
    if not isinstance(ratio, str) or ratio not in TARGET:
        raise BuddysimError(f"{where}: {shortened(ratio)}: expected one of {', '.join(TARGET)}")
    return TARGET[ratio]


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's, but for the one control character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
