"""Graphs: fork and join, buffers shared in place, refused calls of a builder, and rules of random graphs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.training import Layer, Network, NetworkBuilder
from buddysim.training.networks import kinds
from buddysim.training.networks.toml_reader import parse_network
from buddysim.training.networks.toml_writer import to_toml


def names(network: Network, indices: tuple[int, ...]) -> list[str]:
    return [network.layers[index].name for index in indices]


def forked() -> Network:
    """Return the graph of vDNN's Fig. 3: layer 1 feeds 2 and 3, which 4 joins; then 5."""
    net = NetworkBuilder("fork", (3, 8, 8))
    first = net.add("conv", name="1", channels=4, kernel=3, pad=1)
    left = net.add("conv", name="2", inputs=first, channels=4, kernel=1)
    right = net.add("conv", name="3", inputs=first, channels=6, kernel=3, pad=1)
    net.add("concat", name="4", inputs=[left, right])
    net.add("conv", name="5", channels=2, kernel=1)
    return net.build()


def test_refcounts_of_a_fork_and_join() -> None:
    network = forked()
    assert [network.refcount(index) for index in range(6)] == [1, 2, 1, 1, 1, 0]
    assert names(network, network.consumers(1)) == ["2", "3"]
    assert network.layers[4].output_shape == (10, 8, 8)
    assert network.output_bytes(4, batch=2) == 2 * 4 * 10 * 64
    assert network.input_bytes(4, batch=2) == 2 * 4 * (4 + 6) * 64


def test_a_layer_taken_twice_counts_once() -> None:
    net = NetworkBuilder("twice", (2, 4, 4))
    conv = net.add("conv", channels=2, kernel=1)
    net.add("add", inputs=[conv, conv])
    network = net.build()
    assert network.refcount(conv) == 1
    assert network.input_bytes(2, batch=1) == network.output_bytes(1, batch=1)


def test_in_place_chain_has_one_buffer() -> None:
    net = NetworkBuilder("chain", (4,))
    net.add("fc", name="fc", features=8)
    net.add("relu", name="relu")
    net.add("dropout", name="drop")
    net.add("fc", name="out", features=2)
    network = net.build()
    assert [layer.in_place for layer in network.layers] == [False, False, True, True, False]
    assert [network.buffer_of(index) for index in range(5)] == [0, 1, 1, 1, 4]
    assert names(network, network.buffer_readers(1)) == ["out"]
    assert network.buffers == (0, 1, 4)


def test_relu_does_not_overwrite_another_layers_input() -> None:
    net = NetworkBuilder("shared", (3, 8, 8))
    conv = net.add("conv", channels=4, kernel=1)
    relu = net.add("relu")
    net.add("add", inputs=[conv, relu])
    assert not net.build().layers[relu].in_place


@pytest.mark.parametrize("below", ["maxpool", "lrn", "softmax", "sigmoid"])
def test_nothing_overwrites_an_output_that_its_own_backward_step_reads(below: str) -> None:
    net = NetworkBuilder("own", (3, 8, 8))
    net.add("conv", channels=4, kernel=1)
    net.add(below, **({"kernel": 2} if below == "maxpool" else {}))
    after = net.add("relu")
    assert not net.build().layers[after].in_place


def test_a_chain_is_searched_to_its_start() -> None:
    """The second ReLU may not overwrite the dropped output: the first ReLU's backward step still reads its zeros."""
    net = NetworkBuilder("long", (4,))
    for kind, attributes in (("fc", {"features": 4}), ("relu", {}), ("dropout", {}), ("sigmoid", {})):
        net.add(kind, **attributes)
    assert [layer.in_place for layer in net.build().layers] == [False, False, True, True, False]


def test_nothing_runs_in_place_on_the_input() -> None:
    net = NetworkBuilder("first", (4,))
    relu = net.add("relu")
    assert not net.build().layers[relu].in_place


def test_in_place_can_be_declined() -> None:
    net = NetworkBuilder("declined", (4,))
    net.add("fc", features=4)
    relu = net.add("relu", in_place=False)
    assert not net.build().layers[relu].in_place


def test_saved_state() -> None:
    """Dropout's mask has a byte per element of each sample; batch statistics don't grow with the batch."""
    net = NetworkBuilder("saved", (3, 4, 4))
    net.add("conv", channels=8, kernel=1)
    norm = net.add("batchnorm")
    drop = net.add("dropout")
    layers = net.build().layers
    assert layers[norm].saved_bytes(1) == layers[norm].saved_bytes(64) == 2 * 8 * 4
    assert layers[drop].saved_bytes(64) == 64 * 8 * 16
    assert layers[drop].saved_elements == 8 * 16 // 4


def test_backward_reads_are_those_of_the_document() -> None:
    settled = {
        "conv": {"x", "dy"},
        "fc": {"x", "dy"},
        "relu": {"y", "dy"},
        "maxpool": {"x", "y", "dy"},
        "avgpool": {"dy"},
        "concat": {"dy"},
        "add": {"dy"},
        "lrn": {"x", "y", "dy"},
        "batchnorm": {"x", "dy"},
        "dropout": {"mask", "dy"},
    }
    assert {kind: set(kinds.REGISTRY.find(kind).backward_reads) for kind in settled} == settled


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"kind": "conf"}, r"layer 'conf1': 'conf' is not a kind of layer \(nearest: conv\)"),
        ({"kind": "conv", "kernel": 3}, r"layer 'conv1' \(conv\): channels: this key is missing"),
        ({"kind": "conv", "channels": 4, "kernal": 3}, r"kernal: unknown key \(nearest: kernel\)"),
        (
            {"kind": "conv", "channels": 0, "kernel": 3},
            r"channels: expected an integer from 1 to 2147483647, found 0",
        ),
        ({"kind": "conv", "channels": 4, "kernel": [1, 2, 3]}, r"kernel: expected one number, or height and width"),
        ({"kind": "conv", "channels": 4, "kernel": 3, "bias": 1}, r"bias: expected true or false, found 1"),
        ({"kind": "conv", "channels": 4, "kernel": 9}, r"expected an input that its 9x9 window fits .*, found 3x8x8"),
        (
            {"kind": "conv", "channels": 4, "kernel": 1, "groups": 2},
            r"input channels that are a multiple of its 2 groups",
        ),
        ({"kind": "maxpool", "kernel": 2, "pad": 2}, r"expected a padding smaller than its 2x2 window, found 2x2"),
        ({"kind": "dropout", "probability": 1}, r"probability: expected a number from 0 up to, but below, 1, found 1"),
        ({"kind": "lstm", "features": 4}, r"expected an input of tokens x features, found 3x8x8"),
        ({"kind": "add"}, r"layer 'add1' \(add\): expected 2 or more inputs, found 1"),
        ({"kind": "relu", "part": "feature"}, r"part: 'feature' is not a part \(nearest: features\)"),
        ({"kind": "reshape", "shape": [191]}, r"expected an input of 191 elements \(191\), found 3x8x8"),
        ({"kind": "relu", "name": "input"}, r"layer 'input': another layer has this name"),
    ],
)
def test_wrong_layer_is_an_error(attributes: dict[str, object], problem: str) -> None:
    with pytest.raises(BuddysimError, match=problem) as refused:
        NetworkBuilder("refused", (3, 8, 8)).add(**attributes)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)


def test_unread_layer_is_an_error() -> None:
    net = NetworkBuilder("dangling", (3, 8, 8))
    net.add("conv", name="left", channels=4, kernel=1)
    net.add("conv", name="right", inputs=0, channels=4, kernel=1)
    with pytest.raises(BuddysimError, match="layer 'left': nothing reads its output"):
        net.build()


def test_graph_out_of_order_is_an_error() -> None:
    layers = [Layer(0, "input", "input", (), (4,)), Layer(1, "relu", "relu", (1,), (4,))]
    with pytest.raises(ValueError, match="reads a layer that runs after it"):
        Network("wrong", layers)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Generate graphs of layers that keep 8x8 feature maps, with forks and joins."""
    net = NetworkBuilder("random", (draw(st.integers(1, 4)), 8, 8))
    for _ in range(draw(st.integers(1, 14))):
        before = draw(st.integers(0, net.last))
        kind = draw(st.sampled_from(["conv", "relu", "batchnorm", "lrn", "dropout", "maxpool", "add", "concat"]))
        if kind == "conv":
            net.add(kind, inputs=before, channels=draw(st.integers(1, 8)), kernel=3, pad=1)
        elif kind == "maxpool":
            net.add(kind, inputs=before, kernel=3, stride=1, pad=1)
        elif kind == "concat":
            net.add(kind, inputs=[before, draw(st.integers(0, net.last))])
        elif kind == "add":
            same = [index for index in range(net.last + 1) if net.shape(index) == net.shape(before)]
            net.add(kind, inputs=[before, draw(st.sampled_from(same))])
        else:
            net.add(kind, inputs=before)
    read = {producer for layer in net._layers for producer in layer.inputs}
    loose = [index for index in range(net.last + 1) if index not in read]
    if len(loose) > 1:
        net.add("concat", inputs=loose)
    return net.build()


@settings(max_examples=80, deadline=None)
@given(networks())
def test_random_graphs_keep_every_rule(network: Network) -> None:
    layers = network.layers
    for index, layer in enumerate(layers):
        assert layer.index == index
        assert all(producer < index for producer in layer.inputs)
        assert network.consumers(index) == tuple(other.index for other in layers if index in other.inputs)
        assert network.refcount(index) == len(network.consumers(index))
        owner = network.buffer_of(index)
        assert owner == (network.buffer_of(layer.inputs[0]) if layer.in_place else index)
        assert layers[owner].output_elements == layer.output_elements
    assert parse_network(to_toml(network)).layers == layers


@settings(max_examples=80, deadline=None)
@given(networks(), st.data())
def test_values_survive_in_place_execution(network: Network, data: st.DataObject) -> None:
    """Run the graph on tokens: each backward step must find its inputs in their buffers.

    A buffer holds the name of the last output written to it. A ReLU may find the output of a dropout or of
    another ReLU, which kept its zeros; everything else must find exactly what it wants.
    """
    holds: dict[int, int] = {}
    for layer in network.layers:
        for producer in layer.inputs:
            assert holds[network.buffer_of(producer)] == producer
        holds[network.buffer_of(layer.index)] = layer.index
    for layer in reversed(network.layers):
        read_layers = [
            *(layer.inputs if "x" in layer.backward_reads else ()),
            *((layer.index,) if "y" in layer.backward_reads else ()),
        ]
        for one in read_layers:
            holder = holds[network.buffer_of(one)]
            while holder != one and layer.kind == "relu" and network.layers[holder].kind in ("dropout", "relu"):
                holder = network.layers[holder].inputs[0]
            assert holder == one
