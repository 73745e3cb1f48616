"""The part of docs/validation/hardware.md about curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from buddysim.machine import Machine
from buddysim.validation.comparison import PASS, ComparedQuantity
from buddysim.validation.curve.card_curves import CardCurves
from buddysim.validation.curve.metrics import MEDIAN_TOLERANCE, P90_TOLERANCE, percentile


def document(cards: Sequence[CardCurves], quantities: Sequence[ComparedQuantity]) -> Iterator[str]:
    """Yield the lines of docs/validation/hardware.md about curves."""
    yield "## Curves of microbenchmarks"
    yield ""
    yield "The rule, with what is fitted and the definition of a capacity transition, was written before the first"
    yield "comparison: [validation-rules.md](validation-rules.md#curves). Tolerances of each curve: median error 5 %,"
    yield "90th percentile 20 %, capacity transitions 15 % of the footprint."
    yield ""
    yield "![measured and replayed curves](validation-silicon-curves.png)"
    unchecked = [row.machine for row in quantities if row.subject == "every curve"]
    if unchecked:
        yield ""
        yield f"Not checked, for want of curves: {', '.join(f'`{name}`' for name in unchecked)}."
    for card in cards:
        yield from _card_lines(card)
    limited = [row for row in quantities if row.tolerance is not None]
    passed = sum(row.status == PASS for row in limited)
    yield ""
    yield f"Within tolerance: {passed} of {len(limited)}; bold: outside."
    if cards:
        yield from _cause_lines(cards)


def _card_lines(card: CardCurves) -> Iterator[str]:
    """Yield the tables of a card: fitted keys, and errors of its curves."""
    yield ""
    yield f"### {card.card.about}: `{card.card.machine}`"
    yield ""
    clocks = "; ".join(f"`{key}` {value} ({card.card.sources[key]})" for key, value in card.card.clocks.items())
    yield f"At the card's clocks: {clocks}."
    yield ""
    yield "| fitted | value | the preset's |"
    yield "|---|--:|--:|"
    for key, value in card.fit.keys.items():
        yield f"| `{key}` | {value} | {Machine.load(card.card.machine).text(key)} |"
    yield ""
    yield (
        "| curve | points | median | 90th percentile | not fitted: median | "
        "capacity transitions: replayed / measured, KiB |"
    )
    yield "|---|--:|--:|--:|--:|---|"
    for curve in card.curves:
        held_out = f"{percentile(curve.held_out, 0.5):.1%}" if curve.held_out else "-"
        transitions = "; ".join(
            f"{level} {'none' if simulated is None else f'{simulated:,.0f}'} / {measured:,.0f}"
            for level, measured, simulated in curve.capacity_transitions()
        )
        errors = [
            format_error(percentile(curve.errors, fraction), tolerance)
            for fraction, tolerance in ((0.5, MEDIAN_TOLERANCE), (0.9, P90_TOLERANCE))
        ]
        name = f"{curve.curve.benchmark} ({curve.curve.source})"
        yield f"| {name} | {len(curve.points)} | {' | '.join(errors)} | {held_out} | {transitions or '-'} |"


def _cause_lines(cards: Sequence[CardCurves]) -> Iterator[str]:
    """Yield the causes of errors outside tolerance."""
    yield ""
    yield "### Causes of errors outside tolerance"
    yield ""
    yield from _CAUSES.splitlines()
    yield ""
    yield "| card | changed | quantity | measured | replayed | with the change |"
    yield "|---|---|---|--:|--:|--:|"
    for card in cards:
        for cause in card.causes:
            numbers = " | ".join(f"{value:,.0f}" for value in (cause.measured, cause.simulated, cause.what_if))
            yield f"| {card.card.name} | {cause.change} | {cause.quantity} | {numbers} |"


_CAUSES = """
- **L1 replacement** (not published): replayed LRU falls from the L1's rate to the L2's at once where a cyclic set is
  larger than the L1. In the measured chases of lines, a pass misses 4.0 (V100), 3.1 (GH200) and about 3 (A100) lines
  for each line beyond 0.94, 0.84 and 0.79 of the L1's size, up to 1.25, 1.25 and 1.16 of it, where all miss. LRU in
  sets of W ways adds W + 1 misses a line until the set is 1 + 1 / W times its size: 3 ways and 120 KiB, 2 ways and
  213 KiB, 2 ways and 152 KiB, none of which is published. With 4 ways and 128 KiB a V100's chase takes 28, 79, 142
  and 203 cycles at 0.98, 1.06, 1.14 and 1.24 (measured 76, 112, 160, 207). Sets filled unevenly, as by a hash, would
  give tails; the measured ends are sharp. Tree-PLRU, clock and RRIP fall at once in all but sets of few ways; a
  random victim still hits in 0.63 at 1.25, not-recently-used in 0.33 at 1.3, where a V100 hits in none.
- **8 warps on one set per SM**: the misses of one warp are in flight when the seven others request the same lines, so
  the replayed curve doesn't change with the L1's ways (4 or 64 on a V100); how far real warps drift apart is not known.
  The A100's points from 20 MiB on (replayed 2 times the measured rate): all SMs run in lockstep here, so 0.4 % of the
  sectors loaded are read from device memory.
- **Refresh**: all banks of all channels at once, 9 % of the time (tRFC / tREFI). Measured writes reach 99.7 % of a
  V100's peak and reads of a set larger than the L2 97 % of the H200's, which such a refresh forbids; JESD235 also has
  single-bank refreshes (`dram.refresh = "single_bank"`). With it `init` and the H200's shared set are right, but
  `read` is too fast by up to 20 % at middle occupancies of a V100, and the kernels that also store by 7 to 9 % at
  most of them. If each warp of a block also started 10 cycles after the one before, as kernels on `gv100` suggest, all
  that does not read and write at once would be right on an H200 (median errors: `read` 1.3, `init` 3.5, the shared
  set 1.4 %) and `init` on a V100 (0.5 %); `scale`, `triad`, `3pt` and `5pt` would be 8 to 14 % off on both, too fast by
  up to 22 % on the H200. So what is missing is mostly something that reads and writes cost each other. It is not known:
  the presets keep the all-bank refresh, which takes the same time on average.
- **Stores and drains**: without the last three keys of the table a V100 is within 10, an A100 within 8 and a GH200
  within 4 of STREAM's 12 tolerances. GH200's `init` is 4 to 17 % too fast below 20 % of occupancy: up to 70 cycles of a
  wave of blocks are missing.
""".strip()


def format_error(error: float, tolerance: float) -> str:
    """Format an error; bold if it exceeds its tolerance."""
    return f"{error:.1%}" if error <= tolerance else f"**{error:.1%}**"
