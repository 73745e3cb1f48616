"""A network from the operators of a captured training."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.formats.operator_graph import OperandTensor, Operator, OperatorGraph, Storage, load_operators
from buddysim.training.networks.from_operator_graph import network_from_operators
from buddysim.training.networks.graph import Network
from tests.formats.test_operator_graph import CAPTURED


def test_the_captured_network() -> None:
    network = Network.load(CAPTURED)
    assert network.name == "fashion-cnn"
    assert " ".join(layer.name for layer in network.layers) == (
        "input conv1 relu1 conv2 relu2 pool2 conv3 relu3 conv4 relu4 pool4 conv5 relu5 pool5 fc1 relu6 drop fc2"
    )
    assert network.input_shape == (1, 28, 28)
    assert network.parameters == 110_010
    pool = network.layers[13]
    assert pool.pool is not None
    assert (pool.output_shape, pool.pool.kernel_h, pool.pool.stride_w) == ((64, 3, 3), 2, 2)
    assert dict(network.layers[16].attributes)["probability"] == 0.5
    graph = load_operators(CAPTURED)
    counted = {o.module: o.flops for o in graph.operators if o.phase == "forward" and o.flops}
    for layer in network.layers:
        if layer.kind in ("conv", "fc"):
            assert layer.flops * 32 == counted[layer.name]  # PyTorch's own count, of a batch of 32


SHAPES = {"x": (2, 3, 8, 8), "w": (4, 3, 3, 3), "y": (2, 4, 8, 8), "z": (2, 4, 8, 8)}


def graph(*operators: Operator) -> OperatorGraph:
    roles = {"x": "input", "w": "weight", "y": "temporary", "z": "temporary"}
    storages = [Storage(4096, roles[name], name) for name in SHAPES]  # type: ignore[arg-type]
    extents = [4 * (1 + sum(extent - 1 for extent in shape)) for shape in SHAPES.values()]
    tensors = [OperandTensor(n, 0, shape, (1,) * 4, "float32", extents[n]) for n, shape in enumerate(SHAPES.values())]
    return OperatorGraph(tuple(storages), tuple(tensors), operators)


CONV = Operator(
    "aten.convolution.default",
    "forward",
    module="c",
    inputs=(0, 1),
    outputs=(2,),
    arguments={"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "transposed": False, "groups": 1},
)


def test_a_small_graph() -> None:
    relu = Operator("aten.relu_.default", "forward", module="r", inputs=(2,), outputs=(2,))
    total = Operator("aten.add.Tensor", "forward", module="s", inputs=(2, 3), outputs=(3,))
    second = dataclasses.replace(CONV, outputs=(3,), module="d")
    network = network_from_operators(graph(CONV, second, relu, total), "small")
    assert [(layer.name, layer.kind, layer.inputs) for layer in network.layers] == [
        ("input", "input", ()),
        ("c", "conv", (0,)),
        ("d", "conv", (0,)),
        ("r", "relu", (1,)),
        ("s", "add", (3, 2)),
    ]
    assert network.layers[1].parameters == 4 * 3 * 9


@pytest.mark.parametrize(
    ("operators", "problem"),
    [
        ((), "no operator reads an input"),
        ((dataclasses.replace(CONV, arguments={"transposed": True}),), "not a convolution of two dimensions"),
        ((dataclasses.replace(CONV, arguments={"padding": (0, 0)}),), r"wrote a tensor of \(2, 4, 8, 8\), expected"),
        (
            (CONV, Operator("aten.bmm.default", "forward", inputs=(2, 1), outputs=(3,))),
            "a product of other than two activations",
        ),
        ((CONV, Operator("aten.erfinv.default", "forward", inputs=(2,), outputs=(3,))), "no kind of layer corresponds"),
        ((CONV, Operator("aten.div.Tensor", "forward", inputs=(2, 3), outputs=(3,))), "a division of two feature maps"),
        ((CONV, Operator("aten.mm.default", "forward", inputs=(2, 2), outputs=(3,))), "a product without weights"),
        (
            (CONV, Operator("aten.add.Tensor", "forward", inputs=(2, 2), outputs=(3,), arguments={"alpha": 2})),
            "a sum of something other",
        ),
        (
            (CONV, Operator("aten.cat.default", "forward", inputs=(2, 2), outputs=(3,), arguments={"dim": 0})),
            "along another extent than channels",
        ),
        ((CONV, Operator("aten.mean.dim", "forward", inputs=(2,), outputs=(1,))), "expected a pooling of"),
    ],
)
def test_operators_that_are_no_layers(operators: tuple[Operator, ...], problem: str) -> None:
    with pytest.raises(BuddysimError, match=problem) as caught:
        network_from_operators(graph(*operators), "small")
    assert str(caught.value).startswith("operator graph: ")


def test_problems_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.graph.json"
    path.write_bytes(graph().to_json())
    with pytest.raises(BuddysimError, match=r"x\.graph\.json: operator graph: no operator reads an input"):
        Network.load(path)
    with pytest.raises(BuddysimError, match="can't read"):
        Network.load(tmp_path / "missing.json")
