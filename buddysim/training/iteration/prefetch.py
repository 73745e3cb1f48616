"""Rules of prefetching: the backward step during or before which offloaded feature maps are copied back.

A layer's X may be several feature maps (of a join), which are prefetched together. If no rule has launched a prefetch
in time, the step that reads the feature map first launches it and waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from buddysim.training.iteration.plan import Prefetch
from buddysim.training.networks.graph import Layer

CONV = "conv"
_LONG = (CONV, "fc")


def launches(
    prefetch: Prefetch,
    layers: Sequence[Layer],
    step_layers: Sequence[int | None],
    first_backward: int,
    first_reads: Mapping[int, int],
) -> list[tuple[int, int]]:
    """Step and layer of each prefetch, in order: X of the layer is copied during the step, or before its first reader.

    Parameters
    ----------
    prefetch : the rule
    step_layers : the layer of each step that may launch copies for later ones; None for those that may not
    first_backward : the step with which the backward part begins
    first_reads : for each layer whose X was offloaded, the step that reads it first
    """
    needed = _by_step(first_reads)
    late = _by_step(
        {layer: just_in_time(layers, step_layers, first_backward, step) for layer, step in first_reads.items()}
    )
    pending = set(first_reads)
    launched: list[tuple[int, int]] = []

    def launch(step: int, candidates: Sequence[int]) -> None:
        for layer in candidates:
            if layer in pending:
                launched.append((step, layer))
                pending.remove(layer)

    for step in range(first_backward, len(step_layers)):
        launch(step, needed.get(step, ()))
        current = step_layers[step]
        if prefetch == "vdnn" and current is not None:
            next_layer = search(layers, current, pending)
            launch(step, () if next_layer is None else (next_layer,))
        elif prefetch == "just-in-time":
            launch(step, late.get(step, ()))
        if not pending:
            break
    return launched


def search(layers: Sequence[Layer], current: int, pending: AbstractSet[int]) -> int | None:
    """The layer whose X is fetched during the backward step of layer `current` (vDNN, Fig. 10).

    Downwards to the nearest layer with something to fetch, but not past a CONV without. (In the figure, the test for a
    CONV follows the loop; this is as the text has it.)
    """
    for index in range(current - 1, -1, -1):
        if index in pending:
            return index
        if layers[index].kind == CONV:
            return None
    return None


def just_in_time(layers: Sequence[Layer], step_layers: Sequence[int | None], first_backward: int, reading: int) -> int:
    """The step that prefetches a feature map whose first reader is step `reading`.

    The nearest CONV or FC, where nothing but layers that run in place lie between; else the step right before: a
    pooling layer holds X, Y, dX and dY at once, and is too short to hide a copy.
    """
    nearest = None
    for before in range(reading - 1, first_backward - 1, -1):
        index = step_layers[before]
        if index is None:
            continue
        if nearest is None:
            nearest = before
        if layers[index].kind in _LONG:
            return before
        if not layers[index].in_place:
            break
    return reading - 1 if nearest is None else nearest


def _by_step(steps: Mapping[int, int]) -> dict[int, list[int]]:
    """Layers by step, the highest layer first: it is read first."""
    layers: dict[int, list[int]] = {}
    for layer in sorted(steps, reverse=True):
        layers.setdefault(steps[layer], []).append(layer)
    return layers
