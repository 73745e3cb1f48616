"""Constants of collectives over one kind of link between GPUs, from ``fitted.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from buddysim.base.textfile import parse_toml

_FITTED = resources.files("buddysim.training.collectives") / "fitted.toml"


@dataclass(frozen=True)
class ProtocolConstants:
    """How NCCL moves messages: a flag in each word (LL), in each 128 bytes (LL128), or announced chunks (Simple).

    Attributes
    ----------
    launch_us : from the start of the kernel to its end, for nothing moved
    hop_us : added by each step from GPU to GPU
    gb_per_s : that a GPU sends, and receives
    """

    launch_us: float
    hop_us: float
    gb_per_s: float


@dataclass(frozen=True)
class SwitchConstants:
    """Reduction in the switch (NVLS): all GPUs send once and receive once.

    Attributes
    ----------
    min_gpus : fewer ones use rings
    """

    launch_us: float
    gb_per_s: float
    min_gpus: int


@dataclass(frozen=True)
class LinkConstants:
    """Constants of one kind of link.

    Attributes
    ----------
    small, medium, large : protocols for messages of that size (LL, LL128, Simple); the fastest one counts
    own_gb_per_s : at which a GPU moves its own part within its memory
    switch : None where the switch does not reduce
    shared : the rate is that of two GPUs, and divided among the pairs
    source : rows that the constants were fitted to, or why they are assumed
    """

    small: ProtocolConstants
    medium: ProtocolConstants
    large: ProtocolConstants
    own_gb_per_s: float
    switch: SwitchConstants | None
    shared: bool
    source: str


@cache
def link_constants() -> dict[str, LinkConstants]:
    """The constants of each kind of link, by the name that machines have."""
    content: dict[str, dict[str, Any]] = parse_toml(_FITTED.read_text(encoding="utf-8"))
    return {name: constants_of(table) for name, table in content.items()}


def constants_of(table: dict[str, Any]) -> LinkConstants:
    """Return the constants of a table of the file."""
    switch = table.get("switch")
    return LinkConstants(
        ProtocolConstants(**table["small"]),
        ProtocolConstants(**table["medium"]),
        ProtocolConstants(**table["large"]),
        table["own_gb_per_s"],
        None if switch is None else SwitchConstants(**switch),
        table.get("shared", False),
        table["source"],
    )
