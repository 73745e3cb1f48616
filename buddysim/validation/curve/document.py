"""The part of docs/validation-silicon.md that is about curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from buddysim.machine import Machine
from buddysim.validation.comparison import Judged
from buddysim.validation.curve.found import OfCard
from buddysim.validation.curve.measures import MEDIAN_GOAL, P90_GOAL, percentile


def document(found: Sequence[OfCard], judged: Sequence[Judged]) -> Iterator[str]:
    """The part of docs/validation-silicon.md."""
    yield "## Curves of microbenchmarks"
    yield ""
    yield "The rule, with what is fitted and what counts as a knee, was written before the first comparison:"
    yield "[validation-rules.md](validation-rules.md#curves). Goals of each curve: median error 5 %, 90th percentile"
    yield "20 %, knees within 15 % of the footprint."
    yield ""
    yield "![measured and replayed curves](validation-silicon-curves.png)"
    unchecked = [row.machine for row in judged if row.subject == "every curve"]
    if unchecked:
        yield ""
        yield f"Not checked, for want of curves: {', '.join(f'`{name}`' for name in unchecked)}."
    for one in found:
        yield ""
        yield f"### {one.card.about}: `{one.card.machine}`"
        yield ""
        clocks = "; ".join(f"`{key}` {value} ({one.card.sources[key]})" for key, value in one.card.clocks.items())
        yield f"At the card's clocks: {clocks}."
        yield ""
        yield "| fitted | value | the preset's |"
        yield "|---|--:|--:|"
        for key, value in one.fit.keys.items():
            yield f"| `{key}` | {value} | {Machine.load(one.card.machine).text(key)} |"
        yield ""
        yield "| curve | points | median | 90th percentile | not fitted: median | knees: replayed / measured, KiB |"
        yield "|---|--:|--:|--:|--:|---|"
        for curve in one.curves:
            held = f"{percentile(curve.held_out, 0.5):.1%}" if curve.held_out else "-"
            knees = "; ".join(
                f"{level} {'none' if ours is None else f'{ours:,.0f}'} / {theirs:,.0f}"
                for level, theirs, ours in curve.knees()
            )
            both = [
                marked(percentile(curve.errors, share), goal) for share, goal in ((0.5, MEDIAN_GOAL), (0.9, P90_GOAL))
            ]
            name = f"{curve.curve.benchmark} ({curve.curve.source})"
            yield f"| {name} | {len(curve.points)} | {' | '.join(both)} | {held} | {knees or '-'} |"
    met = [row for row in judged if row.goal is not None and row.verdict == "met"]
    asked = [row for row in judged if row.goal is not None]
    yield ""
    yield f"Goals met: {len(met)} of {len(asked)}; bold: missed."
    if found:
        yield from why(found)


def why(found: Sequence[OfCard]) -> Iterator[str]:
    """Why goals are missed."""
    yield ""
    yield "### Why goals are missed"
    yield ""
    yield from WHY.splitlines()
    yield ""
    yield "| card | changed | quantity | measured | replayed | with the change |"
    yield "|---|---|---|--:|--:|--:|"
    for one in found:
        for cause in one.causes:
            numbers = " | ".join(f"{value:,.0f}" for value in (cause.measured, cause.replayed, cause.otherwise))
            yield f"| {one.card.name} | {cause.changed} | {cause.quantity} | {numbers} |"


WHY = """
- **L1 replacement** (not published): replayed LRU falls from the L1's rate to the L2's at once where a cyclic set is
  larger than the L1; measured curves fall over a third (chase of lines) to a half (8 warps) of the L1's size, from
  0.8 to 0.95 of it on. A random victim doesn't do that either: a cyclic set of 1.25 times the cache would still hit
  in 0.63 of all lines, where a V100 hits in none. With two places per line (te42kyfo's chase) LRU itself gives the
  slope.
- **Stores at a warp's end**: a turn of blocks of STREAM's `init` takes little more than a block's own overhead, so
  blocks end before their stores are acknowledged (`sm.end_waits_for_stores = false`). With it, though, kernels that
  load and store become too fast at middle occupancies: reads among writes wait longer on real GPUs than here. Both
  errors hide each other, so only `a100` has the key, which meets more goals with it. Reads that wait until a drain
  of writes is over, with drains at the high mark while there are reads, take a V100 from 4 to 10 of STREAM's 12
  goals (both keys on; a trial that is not part of the engine).
- **Refresh**: all banks of all channels at once, 9 % of the time (tRFC / tREFI). Measured writes reach 99.7 % of a
  V100's peak, which such a refresh forbids; JESD235 also has refreshes of single banks (`dram.refresh =
  "single_bank"`), and `init` comes to 1 % with it on a V100. `read` then is too fast at high occupancies by up to 20
  %: the presets keep the refresh of all banks, which takes the time that something unknown takes there.
- **Strides**: the L1's data banks are words wide and a trace knows sectors, not words, so odd strides, free of
  conflicts on real banks, take a cycle per line here; the real L1 also looks up several lines in a cycle. By words,
  a stride of n takes gcd(n, 32) cycles or more (measured 1.0, 2.0, 4.0, 8.0 for 1, 2, 4, 8); the others go by tags:
  1.6 for 3 up to 4.6 for 15, which touch 3 and 15 lines: about 3.3 lines a cycle. Sector masks can't tell 2 (2
  cycles) from 3 (1.6).
""".strip()


def marked(error: float, goal: float) -> str:
    """An error; bold where it misses its goal."""
    return f"{error:.1%}" if error <= goal else f"**{error:.1%}**"
