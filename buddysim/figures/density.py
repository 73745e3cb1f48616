"""Densities of feature maps over a training: the measurement that ships with the package."""

from __future__ import annotations

from typing import Any

from buddysim.formats.maps import Activations, load

ABOUT = "our training, not the paper's ImageNet"


def measurement() -> Activations:
    """The one that ships."""
    return load()


def about(activations: Activations) -> str:
    """What it is of, in a line."""
    made = activations.provenance
    return f"{made.get('network', '').partition(' (')[0]} on {made.get('data', '').partition(',')[0]}; {ABOUT}"


def shown_maps(activations: Activations) -> list[int]:
    """The maps behind ReLU and pooling layers."""
    return [n for n, info in enumerate(activations.maps) if info.kind in ("relu", "maxpool", "avgpool")]


def rows() -> list[dict[str, Any]]:
    """A row for each map and point of the training."""
    activations = measurement()
    return [
        {
            "map": activations.maps[n].name,
            "kind": activations.maps[n].kind,
            "part": activations.maps[n].part,
            "depth": activations.maps[n].depth,
            "iteration": point.iteration,
            "epoch": point.epoch,
            "loss": point.loss,
            "density": statistics.density,
        }
        for n in shown_maps(activations)
        for point in activations.points
        if (statistics := point.statistics(n)) is not None
    ]
