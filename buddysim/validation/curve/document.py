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
    limited = [row for row in quantities if row.tolerance is not None]
    passed = sum(row.status == PASS for row in limited)
    yield f"{passed} of {len(limited)} quantities are within tolerance; bold cells are not. {_HEAD}"
    yield ""
    yield "![measured and simulated curves](curves.png)"
    unchecked = [row.machine for row in quantities if row.subject == "every curve"]
    if unchecked:
        yield ""
        yield f"Without measured curves: {', '.join(f'`{name}`' for name in unchecked)}."
    for card in cards:
        yield from _card_lines(card)
    if cards:
        yield from _cause_lines(cards)


def _card_lines(card: CardCurves) -> Iterator[str]:
    """Yield the tables of a card: fitted keys, and errors of its curves."""
    yield ""
    yield f"### {card.card.about}: `{card.card.machine}`"
    yield ""
    yield "| clock | value | source |"
    yield "|---|--:|---|"
    for key, value in card.card.clocks.items():
        yield f"| `{key}` | {value} | {card.card.sources[key]} |"
    yield ""
    yield "| fitted key | value | preset's value |"
    yield "|---|--:|--:|"
    for key, value in card.fit.keys.items():
        yield f"| `{key}` | {value} | {Machine.load(card.card.machine).text(key)} |"
    yield ""
    yield (
        "| curve | points | median error | 90th percentile | median, points not fitted | "
        "capacity transitions: simulated / measured, KiB |"
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
    yield "| card | change | quantity | measured | simulated | with the change |"
    yield "|---|---|---|--:|--:|--:|"
    for card in cards:
        for cause in card.causes:
            numbers = " | ".join(f"{value:,.0f}" for value in (cause.measured, cause.simulated, cause.what_if))
            yield f"| {card.card.name} | {cause.change} | {cause.quantity} | {numbers} |"


_HEAD = """
Tolerances of each curve: 5 % median error, 20 % error at the 90th percentile, 15 % error in the footprint of a
capacity transition. The fitted keys come from the same curves; [Method](method.md#curves) says which points. Every
point: [curves.csv](curves.csv).
""".strip().replace("\n", " ")

_CAUSES = """
- **L1 replacement** is not published. The simulated LRU drops from the L1's rate to the L2's as soon as a cyclic set
  exceeds the L1. A measured pass misses 4.0 (V100), 3.1 (GH200) and about 3 (A100) lines for each line beyond 0.94,
  0.84 and 0.79 of the L1's size. Every access misses from 1.25, 1.25 and 1.16 of it. LRU with 3 ways and 120 KiB, 2
  ways and 213 KiB, 2 ways and 152 KiB would show these slopes. No source gives such sizes.
- **8 warps on one set per SM**: seven warps request lines while the misses of the first are in flight. The simulated
  curve is the same with 4 and 64 ways. How far real warps drift apart is unknown.
- **A100, shared set from 20 MiB**: the simulated rate is twice the measured one. Simulated SMs run in lockstep, so only
  0.4 % of the loaded sectors come from device memory.
- **Refresh**: the presets refresh all banks at once, 9 % of the time (tRFC / tREFI). Measured writes reach 99.7 % of a
  V100's peak, and reads of an H200 97 %, which such a refresh forbids. Single-bank refresh corrects `init` and the
  H200's shared set. It makes `read` on a V100 too fast by up to 20 %, and kernels that also store by 7 to 9 %. A delay
  of 10 cycles between starting warps corrects `read`, but `scale`, `triad`, `3pt` and `5pt` stay 8 to 14 % too fast. An
  unknown cost of mixing reads and writes is missing.
- **Stores and drains**: without the last three keys of the table, a V100 meets 10 of STREAM's 12 tolerances, an A100 8
  and a GH200 4. `init` on a GH200 is 4 to 17 % too fast below 20 % occupancy, up to 70 cycles for a wave of blocks.
""".strip()


def format_error(error: float, tolerance: float) -> str:
    """Format an error; bold if it exceeds its tolerance."""
    return f"{error:.1%}" if error <= tolerance else f"**{error:.1%}**"
