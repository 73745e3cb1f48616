"""Operations of a module as they were recorded (`networks.recorded`); no network file can describe them."""

from __future__ import annotations

from buddysim.training.networks.layer_kind import Attributes, Inputs, LayerKind, LayerProperties, ShapeMismatch


def _recorded(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    raise ShapeMismatch("a layer that is made by recording a model", "a description")


KINDS = (
    LayerKind(
        "operations",
        "consecutive operations of a module of a recorded model; networks from a config.json consist of these",
        frozenset({"x", "y", "dy"}),
        _recorded,
        max_inputs=None,
        moves=None,
    ),
)
