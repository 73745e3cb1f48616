"""Buddy Compression, Fig. 8: buddy accesses over an iteration of training."""

from __future__ import annotations

from matplotlib.figure import Figure

from buddysim.drawing import style
from buddysim.figures.shared import study
from buddysim.figures.shared.source import Source
from buddysim.figures.shared.table import Table
from buddysim.papers.buddy.choices import ITERATIONS, of_policy, overflow
from buddysim.papers.stated import value

TITLE = "Buddy Compression, Fig. 8: buddy accesses over an iteration, targets kept"
ORDER = 110
STUDY = True
OPTIONS = study.OPTIONS
WIDTH_IN = study.WIDTH_IN
_STATED = {"squeezenet": "buddy-squeezenet-ratio", "resnet50": "buddy-resnet-ratio"}


def data(source: Source) -> Table:
    """A row for each network and snapshot; each snapshot is later in its iteration than the one before."""
    rows = []
    for name in ITERATIONS:
        if name in source.buddy.names():
            ratio = of_policy(source.buddy, name, "final", "ratio")
            for number, (launches, share) in enumerate(overflow(source.buddy, name) or ()):
                rows.append((name, number, launches, share, ratio, value(_STATED[name])))
    columns = ("workload", "snapshot", "launches", "overflow_share", "ratio", "paper_ratio")
    return study.made(source.buddy, "fig8", columns, rows)


def draw(table: Table) -> Figure:
    drawn, axes = study.figure(TITLE, height=2.0)
    highest = 1.0
    for name, line, colour in zip(ITERATIONS, ("o-", "s--"), (style.INK, "0.5"), strict=True):
        rows = table.of(workload=name)
        if rows:
            shares = [None if row["overflow_share"] is None else 100 * row["overflow_share"] for row in rows]
            ratio = "?" if rows[0]["ratio"] is None else f"{rows[0]['ratio']:.2f}"
            label = f"{study.labels([name])[0]}, {ratio}x (paper {rows[0]['paper_ratio']:g}x)"
            axes.plot(
                [row["snapshot"] + 1 for row in rows], shares, line, color=colour, label=label, markersize=2.5,
                linewidth=0.9,
            )  # fmt: skip
            highest = max(highest, *(share for share in shares if share is not None))
    axes.set_ylim(0, 1.15 * highest)
    axes.set_ylabel("buddy accesses, %")
    axes.set_xlabel("snapshot, each later in an iteration")
    study.legend(axes, 1)
    study.caption(
        drawn, table, "Measured: entries that overflow final targets.", study.INPUTS,
        "The paper's curves could not be read; it says that they stay steady.",
    )  # fmt: skip
    return drawn
