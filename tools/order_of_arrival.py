"""Compare the order of issue with the order of arrival on the shipped traces: ``python -m tools.order_of_arrival``.

Each trace is replayed under `ideal` and `buddy` in both orders; `docs/validation/order-of-arrival.csv` holds the
times, from which `python -m tools.write_reference` makes the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import buddysim
from buddysim.base.csvfile import csv_text
from buddysim.base.output import write_text
from buddysim.base.textfile import read_csv

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "docs" / "validation" / "order-of-arrival.csv"
MAX_BYTES = 1 << 20
MACHINE, SCHEMES = "p100-nvlink2", ("ideal", "buddy")
_HEAD = """# Order of arrival

This page bounds the error of the usual order, in which each request is followed to its end when its instruction issues.
With `--exact-order` lines reach L1, L2 and their MSHRs in the order of their arrival
([rules](../reference/replay-rules.md#order-of-arrival)). `python -m tools.order_of_arrival` writes
[the times](order-of-arrival.csv), *simulated* on `{machine}`.

Changes from the order of issue to the order of arrival: {n} times, largest {largest}, median {median}. The slowdown of
`buddy` changes by at most {slowdown}.

The order does not explain why a better machine is sometimes slower. Of 5,000 random pairs without page faults 3.6 % are
slower by more than 0.1 % by issue, and 3.9 % by arrival (`python -m tests.laws.larger`).

| trace | `ideal` | `buddy` | slowdown of `buddy` by issue | by arrival |
|---|--:|--:|--:|--:|
"""


class OrderTimes(NamedTuple):
    """The times of a trace under a scheme in both orders (ps)."""

    trace: str
    scheme: str
    by_issue_ps: int
    by_arrival_ps: int

    @property
    def change(self) -> float:
        """By how much the time changes from the order of issue to the order of arrival; 0.01: 1 % longer."""
        return self.by_arrival_ps / self.by_issue_ps - 1 if self.by_issue_ps else 0.0


def times_of(trace: Path) -> list[OrderTimes]:
    """Replay a trace in both orders."""
    rows = []
    for scheme in SCHEMES:
        by_issue, by_arrival = (
            int(buddysim.simulate(trace, MACHINE, scheme, exact_order=exact).counters["time_ps"])
            for exact in (False, True)
        )
        rows.append(OrderTimes(trace.stem, scheme, by_issue, by_arrival))
    return rows


def stored() -> list[OrderTimes]:
    """Return the stored times."""
    return [
        OrderTimes(row["trace"], row["scheme"], int(row["by_issue_ps"]), int(row["by_arrival_ps"]))
        for row in read_csv(STORED, "times in both orders", MAX_BYTES)
    ]


def page() -> str:
    """Return the page of the stored times."""
    rows = stored()
    by_trace = {row.trace: {one.scheme: one for one in rows if one.trace == row.trace} for row in rows}
    changes = sorted(abs(row.change) for row in rows)
    head = _HEAD.format(
        machine=MACHINE,
        n=len(rows),
        largest=f"{100 * changes[-1]:.1f} %",
        median=f"{100 * changes[len(changes) // 2]:.2f} %",
        slowdown=f"{100 * max(abs(b / a - 1) for a, b in map(_slowdowns, by_trace.values())):.1f} %",
    )
    return head + "".join(f"{line}\n" for line in _lines(by_trace))


def _slowdowns(pair: dict[str, OrderTimes]) -> tuple[float, float]:
    ideal, buddy = (pair[scheme] for scheme in SCHEMES)
    if not ideal.by_issue_ps:
        return 1.0, 1.0
    return buddy.by_issue_ps / ideal.by_issue_ps, buddy.by_arrival_ps / ideal.by_arrival_ps


def _lines(by_trace: dict[str, dict[str, OrderTimes]]) -> Iterator[str]:
    for trace, pair in by_trace.items():
        changes = [f"{100 * pair[scheme].change:+.2f} %" for scheme in SCHEMES]
        yield f"| `{trace}` | {changes[0]} | {changes[1]} | " + " | ".join(f"{x:.3f}x" for x in _slowdowns(pair)) + " |"


def main(arguments: Sequence[str]) -> int:
    """Replay the shipped traces and store their times."""
    if arguments:
        print("usage: python -m tools.order_of_arrival", file=sys.stderr)
        return 2
    with ProcessPoolExecutor() as pool:
        rows = [row for some in pool.map(times_of, sorted((ROOT / "traces").glob("*.bin"))) for row in some]
    write_text(STORED, csv_text([OrderTimes._fields, *rows]))
    print(f"written: {STORED.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
