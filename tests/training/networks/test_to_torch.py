"""Networks computed by PyTorch have the shapes of their descriptions, and sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.contents.reduced_trainings import TRAININGS
from buddysim.training.named_network import load_network
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.reduced import reduced

torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")


@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: training.reduction.network)
def test_every_layer_has_the_shape_that_is_stated(training) -> None:
    from buddysim.training.networks.to_torch import NetworkModule

    one = training.reduction
    network = reduced(load_network(one.network), one.width, one.size, 10)
    shapes = {}
    with torch.device("meta"):
        scores = NetworkModule(network)(
            torch.empty(2, *network.input_shape), lambda layer, values: shapes.update({layer.name: values.shape[1:]})
        )
    assert scores.shape == (2, 10)
    assert len(shapes) == len(network.layers) - 1
    for layer in network.layers[1:]:
        assert np.prod(shapes[layer.name]) == layer.output_elements, layer.name


def test_a_reduced_network_has_the_same_layers() -> None:
    whole = load_network("mobilenet")
    small = reduced(whole, 0.25, 64, 10)
    assert [(a.name, a.kind, a.inputs) for a in small.layers] == [(a.name, a.kind, a.inputs) for a in whole.layers]
    assert [layer.output_shape for layer in small.layers if layer.name in ("conv1", "conv14/pw", "fc")] == [
        (8, 32, 32), (256, 2, 2), (10,),
    ]  # fmt: skip
    depthwise = next(layer for layer in small.layers if layer.name == "conv14/dw")
    assert depthwise.conv.groups == depthwise.conv.in_channels == 256


def test_joins_and_shortcuts_by_hand() -> None:
    from buddysim.training.networks.to_torch import NetworkModule

    net = NetworkBuilder("joins", (2, 4, 4))
    relu = net.add("relu", inputs=0)
    short = net.add("shortcut", inputs=relu, channels=3, stride=2)
    pool = net.add("maxpool", inputs=relu, kernel=2)
    both = net.add("concat", inputs=[short, pool])
    net.add("add", inputs=[both, both])
    net.add("softmax")
    images = torch.arange(-16.0, 16.0).reshape(1, 2, 4, 4)
    output = NetworkModule(net.build())(images)
    alive = np.maximum(np.arange(-16.0, 16.0).reshape(2, 4, 4), 0)
    expected = np.zeros((5, 2, 2))
    expected[:2] = alive[:, ::2, ::2]
    expected[3:] = alive[:, 1::2, 1::2]
    assert np.array_equal(output.numpy().reshape(5, 2, 2), 2 * expected)  # scores, before their softmax


def test_other_kinds_are_refused() -> None:
    from buddysim.training.networks.to_torch import NetworkModule

    net = NetworkBuilder("tokens", (4, 8))
    net.add("layernorm")
    with pytest.raises(BuddysimError, match=r"tokens: layer 'layernorm1': kind layernorm can't be trained here"):
        NetworkModule(net.build())
