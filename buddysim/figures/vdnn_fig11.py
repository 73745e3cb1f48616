"""vDNN, Fig. 11: maximum and average memory of the feature layers under every policy."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from buddysim.figures import style
from buddysim.figures.paper import GIB, SIX, value
from buddysim.figures.runs import Runs

TITLE = "vDNN, Fig. 11: memory of the feature layers (*: the network does not fit in 12 GiB)"

SCHEMES = {
    "vdnn-all-m": "all(m)",
    "vdnn-all-p": "all(p)",
    "vdnn-conv-m": "conv(m)",
    "vdnn-conv-p": "conv(p)",
    "vdnn-dyn": "dyn",
    "base-m": "base(m)",
    "base-p": "base(p)",
}
STATED = {
    "vdnn-all-m": "all-m-average", "vdnn-all-p": "all-p-average",
    "vdnn-conv-p": "conv-p-average", "vdnn-dyn": "dyn-average",
}  # fmt: skip


def data(runs: Runs) -> list[dict[str, Any]]:
    """A row for each network and scheme: GiB, and the average use saved in per cent."""
    rows = []
    for label, name, batch in SIX:
        for scheme, result in runs.of(name, batch, SCHEMES).items():
            average, baseline = result["features.memory.average_bytes"], result["features.memory.baseline_bytes"]
            rows.append(
                {
                    "network": label,
                    "scheme": scheme,
                    "peak_gib": result["features.memory.peak_bytes"] / GIB,
                    "average_gib": average / GIB,
                    "saved_percent": 100 * (1 - average / baseline),
                    "fits": result["fits"],
                }
            )
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    networks = list(dict.fromkeys(row["network"] for row in rows))
    figure, axes = style.figure(TITLE, 1, len(networks), width=13, height=4.4)
    for one, network in zip(axes, networks, strict=True):
        of = [row for row in rows if row["network"] == network]
        labels = [SCHEMES[row["scheme"]] + ("" if row["fits"] else "*") for row in of]
        style.grouped(
            one,
            labels,
            {"maximum": [row["peak_gib"] for row in of], "average": [row["average_gib"] for row in of]},
        )
        saved = one.twinx()
        saved.plot(range(len(of)), [row["saved_percent"] for row in of], "o", color=style.INK, mec="white", ms=5)
        places = [place for place, row in enumerate(of) if row["scheme"] in STATED]
        style.stated(saved, places, [value(STATED[of[place]["scheme"]]) for place in places])
        saved.set_ylim(0, 100)
        saved.tick_params(labelsize=7)
        if one is not axes[-1]:
            saved.set_yticklabels([])
        one.set_title(network, fontsize=9)
        style.turned(one)
    axes[0].set_ylabel("GiB")
    saved.set_ylabel("average use saved, % (dots; diamonds: the paper's average of the six)")
    saved.yaxis.label.set_size(7)
    style.legend(axes[0], 2, loc="upper left", bbox_to_anchor=(-0.2, -0.2))
    return figure
