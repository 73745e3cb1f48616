"""The kinds of layer: one module per family, which lists its kinds as ``KINDS``.

A kind declares everything that depends on it (`buddysim.training.networks.layer_kind.LayerKind`), so adding one is
adding it to a file here or to a plug-in. docs/reference/layer-kinds.md defines what backward steps
read, since papers leave it open.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.training.networks.graph import Layer
from buddysim.training.networks.layer_kind import LayerKind


def _kinds_of(module: ModuleType) -> Mapping[str, LayerKind]:
    listed = getattr(module, "KINDS", ())
    if not isinstance(listed, list | tuple) or not all(isinstance(kind, LayerKind) for kind in listed):
        return {}
    return {kind.name: kind for kind in listed}


REGISTRY: Registry[LayerKind] = Registry("layer kind", __name__, ("KINDS",), _kinds_of)


def rules_of(layer: Layer) -> LayerKind:
    """Return the kind of a layer."""
    return REGISTRY.find(layer.kind)
