"""Densities of feature maps over a training: the observation that ships with the package."""

from __future__ import annotations

from functools import cache
from typing import Any

from buddysim.formats.activations import ActivationsFile
from buddysim.training.contents.observed_activations import shipped


@cache
def measurement() -> ActivationsFile:
    """The one that ships."""
    return shipped()


def about_the_training() -> str:
    """Return one line on the training."""
    made, last = measurement().provenance, measurement().points[-1]
    return f"{made.get('network', 'a network')} on {made.get('data', 'data')}, {last.iteration:,} iterations"


def caption() -> str:
    """Return the training's description for the title of a figure."""
    made = measurement().provenance
    network, data = made.get("network", "").partition(" (")[0], made.get("data", "").partition(",")[0]
    return f"{network} on {data}; buddysim's training, not the paper's ImageNet"


def shown_maps() -> list[int]:
    """Return the indices of the feature maps behind ReLU and pooling layers."""
    return [n for n, info in enumerate(measurement().feature_maps) if info.kind in ("relu", "maxpool", "avgpool")]


def rows() -> list[dict[str, Any]]:
    """Return a row for each feature map behind a ReLU or pooling layer and each point of the training."""
    activations = measurement()
    return [
        {
            "feature_map": activations.feature_maps[n].name,
            "kind": activations.feature_maps[n].kind,
            "part": activations.feature_maps[n].part,
            "depth": activations.feature_maps[n].depth,
            "iteration": point.iteration,
            "epoch": point.epoch,
            "loss": point.loss,
            "density": statistics.density,
        }
        for n in shown_maps()
        for point in activations.points
        if (statistics := point.statistics(n)) is not None
    ]
