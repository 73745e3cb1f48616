"""The layers of a training that wait for the link, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.report.quantities import format_gib, format_percent
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.training.links import REMOVED_BELOW, LayerStall

_HEADINGS = (
    "forward\nms", "backward\nms", "of the\niteration", "offloaded\nGiB", "prefetched\nGiB",
)  # fmt: skip


def stall_parts(scheme: str, time_ms: float, stalls: Sequence[LayerStall]) -> list[Part]:
    """The table of one scheme.

    Parameters
    ----------
    time_ms : of the iteration
    stalls : of its layers, as `layer_stalls` gives them
    """
    if not stalls:
        return [f"{scheme}: no layer stalls"]
    total = sum(stall.stall_ms for stall in stalls)
    rows = [
        (
            stall.name,
            f"{stall.forward_ms:,.2f}" if stall.forward_ms else NOT_APPLICABLE,
            f"{stall.backward_ms:,.2f}" if stall.backward_ms else NOT_APPLICABLE,
            format_percent(stall.stall_ms, time_ms),
            format_gib(stall.offload_bytes) if stall.offload_bytes else NOT_APPLICABLE,
            format_gib(stall.prefetch_bytes) if stall.prefetch_bytes else NOT_APPLICABLE,
            stall.link or "none",
        )
        for stall in stalls
    ]
    heading = f"{scheme}: {len(stalls)} layers stall for {total:,.1f} of {time_ms:,.1f} ms"
    columns = [Column("layer", left=True), *map(Column, _HEADINGS), Column("removed by\nlink", left=True)]
    return [heading, ScreenTable(columns, rows)]


#: What the last column means.
REMOVED = (
    f"removed by: the slowest of the machine's faster links (--link) under which less than "
    f"{format_percent(REMOVED_BELOW)} of the layer's stall is left, by a simulation with that link"
)
