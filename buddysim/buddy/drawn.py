"""How far a ratio spreads over seeds where sizes are drawn: one seed's ratio says nothing of the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from buddysim.buddy.options import ProfileOptions
from buddysim.buddy.profile import profile_with
from buddysim.buddy.sizes import SizeSource
from buddysim.trace import Trace

#: Seeds over which the spread is shown.
DRAWN_SEEDS = 8
_SEEDS = 2**64


def seeds_of_spread(options: ProfileOptions) -> Iterator[ProfileOptions]:
    """The same options with `DRAWN_SEEDS` seeds, from their own on."""
    return (replace(options, seed=(options.seed + step) % _SEEDS) for step in range(DRAWN_SEEDS))


def ratio_spread(trace: Trace, options: ProfileOptions) -> tuple[float, float] | None:
    """The lowest and highest ratio of a trace's profile over seeds; None where every size is the trace's own."""
    if not SizeSource(trace, options.algorithm).drawn:
        return None
    ratios = [profile_with(trace, each).ratio for each in seeds_of_spread(options)]
    return min(ratios), max(ratios)
