"""Which link to the host would remove the stalls of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.result import TrainingResult

#: A stall is removed where less than this fraction of it is left.
REMOVED_BELOW = 0.05


@dataclass(frozen=True)
class LayerStall:
    """A layer that waits for the link.

    Attributes
    ----------
    index, name : of the layer
    forward_ms, backward_ms : how long it waits in an iteration
    offload_bytes, prefetch_bytes : bytes of its copies to the host and back
    link : the slowest faster link under which it hardly waits; None where no link of the machine is fast enough
    """

    index: int
    name: str
    forward_ms: float
    backward_ms: float
    offload_bytes: int
    prefetch_bytes: int
    link: str | None

    @property
    def stall_ms(self) -> float:
        """In both passes."""
        return self.forward_ms + self.backward_ms


def layer_stalls(
    result: TrainingResult, links: Iterable[str], simulated: Callable[[str], TrainingResult]
) -> list[LayerStall]:
    """The layers that stall, the longest stall first, each with the link that would remove it.

    Parameters
    ----------
    result : of the iteration
    links : names of faster links, the slowest first
    simulated : gives the result of the same iteration with another link
    """
    rows = {row["index"]: row for row in result.per_layer}
    stalls = {index: _stall_ms(row) for index, row in rows.items() if _stall_ms(row) > 0}
    removed_by: dict[int, str] = {}
    for link in links:
        if len(removed_by) == len(stalls):
            break
        for row in simulated(link).per_layer:
            index = row["index"]
            if index in stalls and index not in removed_by and _stall_ms(row) < REMOVED_BELOW * stalls[index]:
                removed_by[index] = link
    return [
        LayerStall(
            index,
            rows[index]["name"],
            rows[index]["forward_stall_ms"],
            rows[index]["backward_stall_ms"],
            rows[index]["offload_link_bytes"],
            rows[index]["prefetch_bytes"],
            removed_by.get(index),
        )
        for index in sorted(stalls, key=lambda index: (-stalls[index], index))
    ]


def faster_links(links: dict[str, HostLinkConfig], current: str) -> list[str]:
    """The names of links that are faster than the current one in both directions, the slowest first."""
    here = links[current]
    faster = [
        name
        for name, link in links.items()
        if link.offload_bytes_per_s > here.offload_bytes_per_s and link.prefetch_bytes_per_s > here.prefetch_bytes_per_s
    ]
    return sorted(faster, key=lambda name: (links[name].offload_bytes_per_s, links[name].prefetch_bytes_per_s, name))


def _stall_ms(row: dict[str, float]) -> float:
    return row["forward_stall_ms"] + row["backward_stall_ms"]
