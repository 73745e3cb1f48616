"""Stall time of the layers of a training: a row of bars for each scheme.

RESULT.json is what ``python -m buddysim train NETWORK --json RESULT.json`` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.figures.shared.result_source import Results, ResultSource
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "training: time and stalls of each layer"
FILE = ("RESULT.json", "the file that 'train --json' wrote")
ORDER = 20

_KINDS = {
    "forward": (("forward_ms",), style.SERIES[1]),
    "backward": (("backward_ms", "recompute_ms"), style.SERIES[0]),
    "stall": (("forward_stall_ms", "backward_stall_ms"), style.SERIES[2]),
}
#: Most layer names that are readable; of more layers, the longest are named.
_MAX_NAMES = 60


def data(source: ResultSource) -> Results:
    """Return the saved results by scheme."""
    return source.saved_training()


def draw(results: Results) -> Figure:
    """Draw a panel for each scheme, a bar for each layer in the order of the network."""
    if not results:
        raise BuddysimError("plot stalls: no results: expected results of trainings")
    run = next(iter(results.values()))["provenance"]
    title = f"{run['network']}, batch {run['batch']}, on {run['machine']}, link {run['link']}"
    figure, panels = style.make_figure(
        title, len(results), 1, width=11, height=1.2 + 1.7 * len(results), squeeze=False, sharex=True, sharey=True
    )
    for panel, (scheme, result) in zip(panels.flat, results.items(), strict=True):
        _draw_layers(panel, result["per_layer"])
        panel.set_title(_caption(scheme, result), fontsize=9, loc="left")
        panel.set_ylabel("time, ms")
    style.add_legend(panels[0, 0], len(_KINDS))
    return figure


def _caption(scheme: str, result: Mapping[str, Any]) -> str:
    if not result["fits"]:
        return f"{scheme}: does not fit; times with enough memory"
    stall_fraction = result["stall_ms"] / result["time_ms"] if result["time_ms"] else 0.0
    return f"{scheme}: {result['time_ms']:,.1f} ms, {result['stall_ms']:,.1f} ms of stalls ({stall_fraction:.1%})"


def _draw_layers(panel: Any, layers: list[Mapping[str, Any]]) -> None:
    heights = [0.0] * len(layers)
    for label, (keys, colour) in _KINDS.items():
        values = [sum(layer[key] for key in keys) for layer in layers]
        panel.bar(range(len(layers)), values, 0.8, bottom=heights, color=colour, label=label)
        heights = [height + value for height, value in zip(heights, values, strict=True)]
    longest = sorted(range(len(layers)), key=lambda n: (-heights[n], n))[:_MAX_NAMES]
    panel.set_xticks(sorted(longest), [layers[n]["name"] for n in sorted(longest)])
    style.rotate_group_labels(panel, 6)
