"""vDNN, Fig. 11: maximum and average memory under every policy, of vDNN's the feature layers'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.reported_values import reported_value
from buddysim.papers.vdnn.memory_usage import used_bytes
from buddysim.papers.vdnn.paper_networks import GIB, SIX
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 11: memory of the feature layers (*: the network does not fit in 12 GiB)"
ORDER = 111

SCHEMES = {
    "vdnn-all-m": "all(m)",
    "vdnn-all-p": "all(p)",
    "vdnn-conv-m": "conv(m)",
    "vdnn-conv-p": "conv(p)",
    "vdnn-dyn": "dyn",
    "baseline-m": "base(m)",
    "baseline-p": "base(p)",
}
REPORTED = {
    "vdnn-all-m": "all-m-average", "vdnn-all-p": "all-p-average",
    "vdnn-conv-p": "conv-p-average", "vdnn-dyn": "dyn-average",
}  # fmt: skip
AVERAGES = (
    "Red marks: averages of the six networks, which the paper's text reports for four of its policies; single bars "
    "could not be read from its figure."
)


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network and scheme: GiB, and the average use saved in per cent."""
    rows = []
    for label, name, batch in SIX:
        for scheme, result in source.training.training_results(name, batch, SCHEMES).items():
            provisioned = scheme.startswith("base")  # network-wide, throughout (Sec. V-A)
            held = {
                kind: int(result["memory.peak_bytes"]) if provisioned else used_bytes(result, kind)
                for kind in ("peak", "average")
            }
            rows.append(
                {
                    "network": label,
                    "scheme": scheme,
                    "peak_gib": held["peak"] / GIB,
                    "average_gib": held["average"] / GIB,
                    "saved_percent": 100 * (1 - held["average"] / result["memory.baseline_bytes"]),
                    "fits": result["fits"],
                }
            )
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    """Draw two rows of panels, one scale each: the memory, and the average memory saved."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    shared = {"sharey": "row", "sharex": "col"}
    figure, axes = style.make_figure(TITLE, 2, len(networks), width=13, height=6.4, **shared)
    for (memory, saved), network in zip(axes.T, networks, strict=True):
        bars = [row for row in rows if row["network"] == network]
        labels = [SCHEMES[row["scheme"]] + ("" if row["fits"] else "*") for row in bars]
        style.draw_grouped_bars(
            memory,
            labels,
            {"maximum": [row["peak_gib"] for row in bars], "average": [row["average_gib"] for row in bars]},
        )
        saved.bar(range(len(bars)), [row["saved_percent"] for row in bars], 0.6, color=style.SERIES[4])
        positions = [n for n, row in enumerate(bars) if row["scheme"] in REPORTED]
        averages = [reported_value(REPORTED[bars[n]["scheme"]]) for n in positions]
        style.mark_reported_values(saved, positions, averages, missing=AVERAGES)
        saved.set_ylim(0, 100)
        memory.set_title(network, fontsize=9)
        style.rotate_group_labels(saved)
    axes[0, 0].set_ylabel("memory, GiB")
    axes[1, 0].set_ylabel("average memory saved, %\n(diamonds: the paper's\naverage of the six)")
    style.add_legend(axes[0, 0], 2, loc="upper left", bbox_to_anchor=(0, 1))
    return figure
