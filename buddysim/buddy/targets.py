"""Target ratios of allocations, and the targets file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import nearest, shortened
from buddysim.base.output import write_text
from buddysim.base.result import file_name
from buddysim.base.schema import Schema, checked
from buddysim.base.textfile import parse_toml, read_text, toml_value
from buddysim.buddy.keys_by_allocation import allocation_keys

if TYPE_CHECKING:
    from buddysim.trace import Allocation, Trace

LARGEST_FILE = 64 * 2**20
_TABLE = "targets"


@dataclass(frozen=True, slots=True)
class Target:
    """A target ratio.

    Attributes
    ----------
    name : for example ``"1.33x"``
    device_sectors : sectors of 32 B of an entry in device memory; 0 for 16x, which has 8 B
    device_bytes_per_entry : bytes of a 128 B entry in device memory
    """

    name: str
    device_sectors: int
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


class TargetsFile(Schema):
    """The one table of a targets file: a ratio by an allocation's key."""

    targets: dict[str, Literal["1x", "1.33x", "2x", "4x", "16x"]]


class Targets:
    """The target of every allocation of a trace; 1x for an allocation without one.

    Parameters
    ----------
    trace : the trace, or its allocations
    by_index : targets by allocation index
    source : plain values on how they were chosen, for the provenance of results

    Attributes
    ----------
    allocations, source : as given
    """

    def __init__(
        self,
        trace: Trace | Sequence[Allocation],
        by_index: Mapping[int, Target],
        source: Mapping[str, Any] | None = None,
    ) -> None:
        self.allocations = list(trace if isinstance(trace, Sequence) else trace.allocations)
        self._by_index = dict(by_index)
        self.source = dict(source or {"kind": "given"})

    @classmethod
    def uniform(cls, trace: Trace | Sequence[Allocation], ratio: str) -> Targets:
        """Return the same target for every device allocation."""
        target = _target(ratio, "ratio")
        allocations = trace if isinstance(trace, Sequence) else trace.allocations
        by_index = {a.index: target for a in allocations if a.space == "device"}
        return cls(allocations, by_index, {"kind": "uniform", "ratio": ratio})

    def of(self, allocation: int) -> Target:
        """Return the target of an allocation, by its index."""
        return self._by_index.get(allocation, ALL_TARGETS[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Targets) and all(self.of(a.index) == other.of(a.index) for a in self.allocations)

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, str]:
        """Return the ratios by the keys of the file."""
        keys = allocation_keys(self.allocations)
        return {keys[a.index]: self.of(a.index).name for a in self.allocations if a.space == "device"}

    def save(self, path: str | os.PathLike[str], comment: str = "") -> None:
        """Write the file, completely or not at all.

        Parameters
        ----------
        path : the file; an existing one is replaced
        comment : lines for its head, for example how the targets were chosen
        """
        lines = [f"# {line}".rstrip() for line in comment.splitlines()]
        lines += [
            f"# Ratio of each device allocation: {', '.join(TARGET)}; one that isn't listed is kept whole (1x).",
            f"[{_TABLE}]",
        ]
        names = {key: self.allocations[number].name for number, key in enumerate(_keys_in_order(self.allocations))}
        for key, ratio in self.to_dict().items():
            name = f"  # {toml_value(names[key])}" if names[key] != key else ""
            lines.append(f"{toml_value(key)} = {toml_value(ratio)}{name}")
        text = "\n".join(lines) + "\n"
        write_text(path, text)

    @classmethod
    @within_budget
    def load(cls, path: str | os.PathLike[str], trace: Trace | Sequence[Allocation]) -> Targets:
        """Read a file for a trace; raise BuddysimError where it does not match the trace."""
        allocations = list(trace if isinstance(trace, Sequence) else trace.allocations)
        where = os.fspath(path)
        text = read_text(path, "targets file", LARGEST_FILE)
        table = checked(TargetsFile, parse_toml(text, where), where).targets
        by_key = {key: index for index, key in allocation_keys(allocations).items()}
        host = {a.index for a in allocations if a.space == "host"}
        by_index: dict[int, Target] = {}
        for key, ratio in table.items():
            if key not in by_key:
                raise BuddysimError(f"{where}: {_unknown(key, by_key, allocations)}")
            if by_key[key] in host:
                raise BuddysimError(f"{where}: {key!r} lies in host memory: expected device allocations only")
            by_index[by_key[key]] = TARGET[ratio]
        checksum = hashlib.sha256(text.encode("utf-8")).hexdigest()
        return cls(allocations, by_index, {"kind": "file", "file": file_name(where), "checksum": checksum})


def _keys_in_order(allocations: Sequence[Allocation]) -> list[str]:
    keys = allocation_keys(allocations)
    return [keys[a.index] for a in allocations]


def _unknown(key: str, by_key: Mapping[str, int], allocations: Sequence[Allocation]) -> str:
    named = {a.index for a in allocations if a.name == key}
    same_name = [known for known, index in by_key.items() if index in named or known.startswith(f"{key}#")]
    if len(same_name) > 1:
        return f"{shortened(key)}: several allocations have this name, expected {', '.join(same_name[:4])}" + (
            ", .." if len(same_name) > 4 else ""
        )
    near = same_name[0] if same_name else nearest(key, by_key)
    return f"{shortened(key)}: the trace has no such allocation" + (f" (nearest: {shortened(near)})" if near else "")


def _target(ratio: object, where: str) -> Target:
    if not isinstance(ratio, str) or ratio not in TARGET:
        raise BuddysimError(f"{where}: {shortened(ratio)}: expected one of {', '.join(TARGET)}")
    return TARGET[ratio]
