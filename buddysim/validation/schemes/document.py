"""The part of docs/validation/llm.md on schemes: every pair, and the causes of misses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from buddysim.validation.schemes.compared_schemes import ComparedScheme, ordered_pairs
from buddysim.validation.schemes.tolerances import LARGE_TOLERANCE, SAVED_TOLERANCE, SMALL_TOLERANCE

_NONE = "-"


def schemes_lines(rows: Sequence[ComparedScheme]) -> Iterator[str]:
    """Yield the lines of the section."""
    simulated = [one for one in rows if one.slowdown is not None]
    yield "## Schemes of training"
    yield ""
    yield from _HEAD.splitlines()
    yield ""
    yield "| row | without | slowdown: simulated | measured | error | saved: simulated | measured | error |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for one in simulated:
        yield f"| {one.row.id} | {one.row.compared_with} | {' | '.join(_cells(one))} |"
    yield ""
    for faster, slower, right in ordered_pairs(rows):
        if not right:
            yield f"Wrong order: {faster} is measured to be faster than {slower}."
            yield ""
    n_pairs, n_right = len([*ordered_pairs(rows)]), sum(right for *_, right in ordered_pairs(rows))
    yield f"Order of variants: {n_right} of {n_pairs} pairs as measured."
    yield ""
    yield from _CAUSES.splitlines()
    yield ""
    yield "Not simulated:"
    yield ""
    yield "| row | without | variant | slowdown | saved | reason |"
    yield "|---|---|---|--:|--:|---|"
    for one in rows:
        if one.slowdown is None:
            row = one.row
            printed = f"{_slowdown(row.slowdown, row.is_bound)} | {_saved(row.saved, row.saved_unit)}"
            yield f"| {row.id} | {row.compared_with or _NONE} | {row.variant} | {printed} | {row.reason} |"


def _cells(one: ComparedScheme) -> tuple[str, ...]:
    row = one.row
    assert one.slowdown_error is not None
    assert one.saved_error is not None
    large = one.is_large
    time = f"{one.slowdown_error:+.0%}" if large else f"{100 * one.slowdown_error:+.1f} points"
    failed = abs(one.slowdown_error) > (LARGE_TOLERANCE if large else SMALL_TOLERANCE)
    return (
        _slowdown(one.slowdown, False), _slowdown(row.slowdown, row.is_bound), f"**{time}**" if failed else time,
        _saved(one.saved, row.saved_unit), _saved(row.saved, row.saved_unit),
        f"**{one.saved_error:+.1%}**" if abs(one.saved_error) > SAVED_TOLERANCE else f"{one.saved_error:+.1%}",
    )  # fmt: skip


def _slowdown(value: float | None, is_bound: bool) -> str:
    return _NONE if value is None else f"{'below ' * is_bound}{value:.3f}x"


def _saved(value: float | None, unit: str) -> str:
    if value is None:
        return _NONE
    return f"{value:.1%}" if unit == "fraction" else f"{value:.2f} {unit}"


_HEAD = """
Published pairs of trainings that differ by a scheme, next to simulated ones. Nothing is fitted; rules and readings are
those of [method](method.md#schemes-of-training). A slowdown is time over time without the scheme. Its error is that of
the time in addition where more than 5 % are measured (tolerance 30 %), else the difference (2 points). Memory saved has
a tolerance of 10 %.
""".strip()

_CAUSES = """
Causes of errors:

- *torchao-offload-003, -004*: torchao's `step` runs in the thread that launches the backward pass. So updates begin
  once the rest of its launches fits into the stream; a block takes 64 entries. The step without offload is simulated
  1.17 s and measured 1.27 s on this card, so the rest hides too little. With kernels scaled to the
  measured step both rows are 1.189x: -4 and -8 %. With the throttling of the L40S it is 1.41 s, and row -004 1.141x
  ([products on GPUs without timings](operators.md#products-on-gpus-without-timings)). Of the compiled row, which hides
  nothing, updates take 0.60 s; measured 0.57.
- *offload-pr-012 to -014*: simulated copies are hidden wholly, while the source's growing bounds suggest that some are
  not.
""".strip()
