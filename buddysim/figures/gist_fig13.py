"""Gist, Fig. 13: DPR alone, stashed feature maps without shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.mfr import immediate, stashed
from buddysim.papers.gist.paper_networks import FORMATS, GIB, NETWORKS, mfr, run
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 13: DPR alone, stashed feature maps without shared memory"
ORDER = 313

NAMES = {"gist-base": "FP32"}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network and format; GiB stashed and consumed immediately, the MFR."""
    rows = []
    for label in NETWORKS:
        for scheme in dict.fromkeys(("gist-base", "gist-dpr-fp16", f"gist-dpr-{FORMATS[label]}")):
            outcome = run(label, scheme, "investigation")
            parts = {"stashed": sum(stashed(outcome).values()) / GIB, "consumed immediately": immediate(outcome) / GIB}
            rows.append({"network": label, "scheme": scheme, "gib": parts, "mfr": mfr(label, scheme, "investigation")})
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, width=12)
    labels = [
        f"{row['network']}\n{NAMES.get(row['scheme'], row['scheme'].removeprefix('gist-dpr-').upper())}" for row in rows
    ]
    parts = {part: [row["gib"][part] for row in rows] for part in rows[0]["gib"]}
    heights = style.draw_stacked_bars(axes, labels, parts)
    reported = {
        ("AlexNet", "gist-dpr-fp16"): reported_value("dpr16-alexnet"),
        ("AlexNet", "gist-dpr-fp8"): reported_value("dpr8-alexnet"),
    }
    for n, (row, height) in enumerate(zip(rows, heights, strict=True)):
        paper = reported.get((row["network"], row["scheme"]))
        text = f"{row['mfr']:.2f}" + (f"\n(paper {paper})" if paper else "")
        axes.annotate(text, (n, height), (0, 2), textcoords="offset points", ha="center", fontsize=7)
    axes.tick_params(axis="x", labelsize=7)
    axes.set_ylabel("memory, GiB (above: MFR)")
    style.add_legend(axes, 2)
    return figure
