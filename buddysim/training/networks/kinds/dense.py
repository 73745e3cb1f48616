"""Fully connected layers, products of activations, softmax."""

from __future__ import annotations

from buddysim.training.networks.graph import Gemm, Layer
from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    AutogradSaved,
    Device,
    Inputs,
    LayerKind,
    LayerProperties,
    ShapeMismatch,
    TorchNames,
    elements,
    one_value_each,
    per_output,
    shape_text,
    tokens,
)


def _fc(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    shape = inputs[0]
    rows, inner = (shape[0], shape[1]) if len(shape) == 2 else (1, elements(shape))
    features = attributes["features"]
    held = attributes["rows"] or features
    if held < features:
        raise ShapeMismatch(f"at least its {features} features as rows", held)
    gemm = Gemm(rows, features, inner)
    own = 0 if attributes["tied"] else held * inner
    return LayerProperties(
        (rows, features) if len(shape) == 2 else (features,),
        parameters=own + held * attributes["bias"],
        flops=2 * gemm.multiply_adds,
        gemms=(gemm,),
    )


def _fc_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    return AutogradSaved((0,), weights_for_dx=sum(gemm.n * gemm.k for gemm in layer.gemms))


def _matmul(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    (rows, wide), other, heads = tokens(inputs[0]), tokens(inputs[1]), attributes["heads"]
    if attributes["transposed"]:
        if other[1] != wide:
            raise ShapeMismatch(f"inputs of as many features each ({wide})", other[1])
        if wide % heads:
            raise ShapeMismatch(f"features that are a multiple of its {heads} heads", wide)
        gemm = Gemm(rows, other[0], wide // heads, count=heads, weights=False)
        return LayerProperties((heads * rows, other[0]), flops=2 * gemm.multiply_adds, gemms=(gemm,))
    if wide != other[0] or rows % heads or other[1] % heads:
        expected = f"a first input of n x {other[0]}, n and features a multiple of its {heads} heads"
        raise ShapeMismatch(expected, f"{shape_text(inputs[0])} and {shape_text(inputs[1])}")
    gemm = Gemm(rows // heads, other[1] // heads, wide, count=heads, weights=False)
    return LayerProperties((rows // heads, other[1]), flops=2 * gemm.multiply_adds, gemms=(gemm,))


KINDS = (
    LayerKind(
        "fc",
        "fully connected; on tokens x features for each token",
        frozenset({"x", "dy"}),
        _fc,
        {
            "features": Attribute("count", "output features"),
            "bias": Attribute("flag", "a bias for each output feature", True),
            "rows": Attribute("count", "rows of weights, where a step uses only `features` of them", optional=True),
            "tied": Attribute("flag", "the weights are another layer's", False),
        },
        classifier="dense",
        moves=None,
        saves=_fc_saves,
    ),
    LayerKind(
        "matmul",
        "product of two activations, head by head; `transposed`: of the first with the second transposed",
        frozenset({"x", "dy"}),
        _matmul,
        {
            "heads": Attribute("count", "independent products", 1),
            "transposed": Attribute("flag", "the second factor is transposed", False),
        },
        min_inputs=2,
        max_inputs=2,
        moves=None,
    ),
    LayerKind(
        "softmax",
        "values that add up to one",
        frozenset({"y", "dy"}),
        one_value_each(5),
        classifier="loss",
        moves=per_output(3, 3),  # the largest and the sum first, then the values
        torch=TorchNames(("Softmax", "LogSoftmax"), ("softmax", "log_softmax"), ("_softmax", "_safe_softmax")),
    ),
)
