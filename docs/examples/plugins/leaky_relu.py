"""A kind of layer of your own."""

from __future__ import annotations

from buddysim.training.networks.layer_kind import LayerKind, TorchNames, one_value_each, per_output

KINDS = (
    LayerKind(
        "leaky-relu",
        "x where it is positive, a small fraction of it elsewhere",
        frozenset({"y", "dy"}),  # y has the sign of x
        one_value_each(2),
        runs_in_place="elementwise",
        keeps_sign=True,
        classifier="between",
        moves=per_output(2, 3),  # forward: x, y; backward: y, dy, dx
        torch=TorchNames(("LeakyReLU",), ("leaky_relu", "leaky_relu_"), ("leaky_relu", "leaky_relu_")),
    ),
)
