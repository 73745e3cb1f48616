"""Every network of the zoo has its published parameter count, and keeps the rules of a graph."""

from __future__ import annotations

import re

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training import zoo
from buddysim.training.named_network import load_network

# Published counts, weights and biases; batch normalisation's learned scales and shifts count, its averages don't.
EXACT = {
    # torchvision's documentation of each model ("num_params")
    "alexnet": 61_100_840,
    "vgg11": 132_863_336,
    "vgg13": 133_047_848,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "vgg16-vdnn": 143_667_240,
    "squeezenet": 1_248_424,
    "squeezenet-1.1": 1_235_496,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "vit-b16": 86_567_656,
    # Caffe's model zoo, by its layer tables; its weight files have 4 bytes each and a header: 243.9 MB (AlexNet),
    # 53.5 MB (GoogLeNet), 30.4 MB (NiN)
    "alexnet-caffe": 60_965_224,
    "googlenet-caffe": 13_378_280,
    "nin": 7_595_176,
    # the same without LRN and without both auxiliary classifiers
    "googlenet": 6_998_552,
    # Cadene/pretrained-models.pytorch, bninception
    "bn-inception": 11_295_240,
    # torchvision, inception_v3 without its auxiliary classifier: 27,161,264 - 3,326,696
    "inception-v3": 23_834_568,
    # Keras, MobileNet: trainable parameters
    "mobilenet": 4_231_976,
    # openai/gpt-2, as counted by transformers
    "gpt2": 124_439_808,
    # transformers, BertForMaskedLM: bert-base-uncased, bert-large-uncased
    "bert-base": 109_514_298,
    "bert-large": 335_174_458,
    "gpt2-medium": 354_823_168,
}
ROUNDED = {
    # Sermanet et al., ICLR 2014, Table 4: 145 million
    "overfeat": (145.9e6, 0.05e6),
    # He et al., CVPR 2016, Table 6
    "resnet20": (0.27e6, 0.005e6),
    "resnet32": (0.46e6, 0.005e6),
    "resnet44": (0.66e6, 0.005e6),
    "resnet56": (0.85e6, 0.005e6),
    "resnet110": (1.7e6, 0.05e6),
    "resnet1202": (19.4e6, 0.05e6),
    # Lin et al.: 0.97 million
    "nin-cifar10": (0.97e6, 0.005e6),
    # Jozefowicz et al. 2016, Table 1: 1.8 billion
    "big-lstm": (1.8e9, 0.05e9),
}
# Multiply-adds of one image that papers state.
MULTIPLY_ADDS = {
    # He et al., CVPR 2016, Table 1: 1.8, 3.6, 3.8, 7.6, 11.3 billion, strides in the first 1x1 of a bottleneck, which
    # torchvision and this zoo put into the 3x3: 4.1, 7.8 and 11.5 billion
    "resnet18": (1.8e9, 0.05e9),
    "resnet34": (3.65e9, 0.05e9),
    "resnet50": (4.1e9, 0.05e9),
    "resnet101": (7.8e9, 0.05e9),
    "resnet152": (11.5e9, 0.05e9),
    # He et al., Table 1 (right): 19.6 billion
    "vgg19": (19.6e9, 0.05e9),
    # Howard et al. 2017, Table 4: 569 million
    "mobilenet": (569e6, 0.5e6),
}
CONV_LAYERS = {
    "vgg11": 8,
    "vgg16": 13,
    "vgg19": 16,
    "vgg116": 116,
    "vgg216": 216,
    "vgg316": 316,
    "vgg416": 416,
    "googlenet": 57,
    "squeezenet": 26,
    "squeezenet-1.1": 26,
    "plain20": 19,
    "resnet1202": 1201,
}


@pytest.mark.parametrize("name", EXACT)
def test_parameters_are_those_published(name: str) -> None:
    assert load_network(name).parameters == EXACT[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_parameters_round_to_those_published(name: str) -> None:
    published, rounding = ROUNDED[name]
    assert abs(load_network(name).parameters - published) <= rounding


@pytest.mark.parametrize("name", MULTIPLY_ADDS)
def test_multiply_adds_round_to_those_published(name: str) -> None:
    published, rounding = MULTIPLY_ADDS[name]
    layers = load_network(name).layers
    work = sum(layer.conv.multiply_adds for layer in layers if layer.conv)
    work += sum(gemm.multiply_adds for layer in layers for gemm in layer.gemms)
    assert abs(work - published) <= rounding


@pytest.mark.parametrize("name", CONV_LAYERS)
def test_conv_layers(name: str) -> None:
    assert sum(layer.kind == "conv" for layer in load_network(name).layers) == CONV_LAYERS[name]


def test_bottleneck_depths_of_gist() -> None:
    """The depth 3m+2 counts layers with weights, without shortcuts."""
    for depth in (509, 851):
        layers = load_network(f"resnet{depth}").layers
        weighted = [layer for layer in layers if layer.kind in ("conv", "fc") and "proj" not in layer.name]
        assert len(weighted) == depth


@pytest.mark.parametrize("name", zoo.names(recorded=False))
def test_every_network_keeps_the_rules_of_a_graph(name: str) -> None:
    network = load_network(name)
    assert network.name == name
    assert network.source
    assert network.description
    assert len({layer.name for layer in network.layers}) == len(network.layers)
    read = [0] * len(network.layers)
    for index, layer in enumerate(network.layers):
        assert layer.index == index
        assert all(producer < index for producer in layer.inputs)
        for producer in set(layer.inputs):
            read[producer] += 1
            assert index in network.consumers(producer)
        assert layer.part in ("features", "classifier")
        assert layer.backward_reads <= {"x", "y", "dy", "mask"}
        assert layer.conv is None or layer.output_shape == (
            layer.conv.out_channels,
            layer.conv.out_h,
            layer.conv.out_w,
        )
    assert [network.refcount(index) for index in range(len(read))] == read
    assert network.layers[-1].kind == "softmax"
    assert network.layers[-1].part == "classifier"


@pytest.mark.parametrize("name", zoo.names(recorded=False))
def test_no_feature_map_is_overwritten_before_its_last_read(name: str) -> None:
    """An in-place layer's input has no other reader, and no backward step reads its old value."""
    network = load_network(name)
    for layer in network.layers:
        if not layer.in_place or layer.kind == "reshape":
            continue
        below = network.layers[layer.inputs[0]]
        assert network.consumers(below.index) == (layer.index,)
        assert network.buffer_of(layer.index) == network.buffer_of(below.index)
        assert "x" not in layer.backward_reads
        assert "y" not in below.backward_reads or (below.kind, layer.kind) == ("relu", "dropout")
        assert below.kind != "input"


def test_relu_after_conv_or_its_normalisation_runs_in_place() -> None:
    for name in ("vgg19", "googlenet", "resnet50", "squeezenet", "bn-inception", "inception-v3", "mobilenet", "nin"):
        layers = load_network(name).layers
        assert all(layer.in_place for layer in layers if layer.kind == "relu")


def test_fork_and_join_counts() -> None:
    """GoogLeNet's modules fork in four and concatenate; a residual block forks in two."""
    googlenet = load_network("googlenet")
    by_name = {layer.name: layer for layer in googlenet.layers}
    assert googlenet.refcount(by_name["pool2/3x3_s2"].index) == 4
    assert len(by_name["inception_3a/output"].inputs) == 4
    assert by_name["inception_3a/output"].output_shape == (256, 28, 28)
    resnet = load_network("resnet50")
    by_name = {layer.name: layer for layer in resnet.layers}
    assert resnet.refcount(by_name["conv2_1/relu"].index) == 2
    assert resnet.buffer_of(by_name["conv2_1/relu"].index) == by_name["conv2_1/add"].index
    assert [resnet.layers[index].name for index in resnet.buffer_readers(by_name["conv2_1/add"].index)] == [
        "conv2_2/1x1_reduce",
        "conv2_2/add",
    ]


def test_intermediate_shapes() -> None:
    shapes = {
        ("alexnet", "conv1"): (64, 55, 55),
        ("alexnet-caffe", "conv1"): (96, 55, 55),
        ("alexnet-caffe", "pool5"): (256, 6, 6),
        ("overfeat", "conv1"): (96, 56, 56),
        ("overfeat", "pool5"): (1024, 6, 6),
        ("nin", "pool3"): (384, 6, 6),
        ("googlenet", "inception_5b/output"): (1024, 7, 7),
        ("googlenet-caffe", "loss1/ave_pool"): (512, 4, 4),
        ("bn-inception", "inception_4e/output"): (1056, 7, 7),
        ("inception-v3", "mixed1"): (256, 35, 35),
        ("inception-v3", "mixed4"): (768, 17, 17),
        ("inception-v3", "mixed9"): (1280, 8, 8),
        ("inception-v3", "mixed11"): (2048, 8, 8),
        ("squeezenet", "conv1"): (96, 109, 109),
        ("squeezenet", "conv10"): (1000, 13, 13),
        ("resnet152", "conv5_3/add"): (2048, 7, 7),
        ("mobilenet", "conv14/pw"): (1024, 7, 7),
        ("vit-b16", "positions"): (197, 768),
        ("vit-b16", "block1/scores"): (12 * 197, 197),
        ("gpt2", "block12/add2"): (1024, 768),
        ("big-lstm", "lstm2"): (20, 1024),
    }
    for (name, layer), shape in shapes.items():
        assert {one.name: one for one in load_network(name).layers}[layer].output_shape == shape


def test_classifier_is_what_closes_the_network() -> None:
    starts = {
        "alexnet": "fc6",
        "vgg19": "fc6",
        "googlenet": "pool5/drop",
        "nin": "softmax",
        "resnet50": "fc",
        "vit-b16": "class_token",
        "gpt2": "scores",
    }
    for name, start in starts.items():
        layers = load_network(name).layers
        assert next(layer.name for layer in layers if layer.part == "classifier") == start


def test_deeper_vgg_adds_twenty_to_each_group() -> None:
    for steps in (1, 2, 3, 4):
        groups = [0] * 5
        for layer in load_network(f"vgg{steps}16").layers:
            if match := re.fullmatch(r"conv(\d)_\d+", layer.name):
                groups[int(match[1]) - 1] += 1
        assert groups == [count + 20 * steps for count in (2, 2, 4, 4, 4)]


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(BuddysimError, match=r"'vgg191' is not a network.*\(nearest: vgg19\)"):
        load_network("vgg191")


@pytest.mark.parametrize("name", ["", " ", "n" * 5000, "\0", "vgg19\n", "a/" * 3000, "\0.toml", "/"])
def test_odd_names_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(BuddysimError) as refused:
        load_network(name)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_settings_behind_a_name() -> None:
    network = load_network("gpt2:tokens=128,vocabulary=1000,fused=true")
    assert network.name == "gpt2:tokens=128,vocabulary=1000,fused=true"
    assert network.input_shape == (128,)
    assert network.layers[-1].output_shape == (128, 1000)
    assert {"attention"} == {layer.kind for layer in network.layers} & {"attention", "matmul"}
    assert load_network("gpt2:fused=false").parameters == load_network("gpt2").parameters
    assert load_network("lstm-ptb:features=650").parameters < load_network("lstm-ptb").parameters


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gpt2:tokns=3", r"'tokns': expected one of tokens, vocabulary, fused \(nearest: tokens\)"),
        ("gpt2:tokens=0", "tokens: expected an integer from 1, found '0'"),
        ("gpt2:fused=1", "fused: expected true or false, found '1'"),
        ("gpt2:", "setting '': expected one of"),
        ("vgg19:tokens=3", "expected none"),
    ],
)
def test_unknown_setting_is_an_error(name: str, problem: str) -> None:
    with pytest.raises(BuddysimError, match=problem):
        load_network(name)
