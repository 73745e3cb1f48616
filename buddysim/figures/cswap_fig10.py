"""CSWAP, Fig. 10: errors of models that predict codec times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.gpu_codecs import LAYOUTS
from buddysim.papers.cswap.codec_models import errors
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 10: relative absolute error of predicted codec times (ZVC, V100, grid 197)"
ORDER = 410

#: Scikit-learn's estimators are of the extra ``ml``.
WHERE = ("within", "beyond")


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each layout, model and range of sizes."""
    return [
        {"layout": layout, "model": model, "where": where, "rae_percent": model_errors[where]}
        for layout in LAYOUTS
        for model, model_errors in errors(layout).items()
        for where in WHERE
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 1, 2, width=13, sharey=True)
    for panel, layout in zip(axes, LAYOUTS, strict=True):
        own = [row for row in rows if row["layout"] == layout]
        models = list(dict.fromkeys(row["model"] for row in own))
        series = {
            f"{where} the fitted sizes": [row["rae_percent"] for row in own if row["where"] == where] for where in WHERE
        }
        style.draw_grouped_bars(panel, models, series, "{:.0f}")
        panel.set_yscale("log")
        panel.set_title(layout, fontsize=9, loc="left")
        style.rotate_group_labels(panel)
    axes[0].set_ylabel("relative absolute error, %")
    style.add_legend(axes[1], 2)
    style.draw_reported_line(axes[1], 3, "paper: LR, mean")
    style.add_caption(
        axes[0], "LR n: linear regression in n sub-models by sparsity. Errors on simulated tensors that no fit saw."
    )
    return figure
