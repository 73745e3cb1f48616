"""Time never rises when a dimension shrinks: every layer of the zoo, random CONVs, products and language models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from buddysim.training import Conv, Network, zoo
from buddysim.training.cost import PASSES, CostModel
from buddysim.training.cost.work import ConvWork, MatmulWork, Pass
from buddysim.training.named_network import load_network
from buddysim.training.networks.builder import NetworkBuilder

LIMIT = 1.1
"""A smaller step may take this much longer: tiles that fit worse."""

MODELS = {
    (machine, library): CostModel.load(machine, library)
    for machine, library in [
        ("titan-x", "cudnn4"),
        ("titan-x", "cudnn5"),
        ("gtx-1080-ti", "cudnn5"),
        ("p100", "cudnn5"),
        ("v100", "cudnn7"),
        ("a100-40", "generic"),
    ]
}
models = st.sampled_from(sorted(MODELS)).map(MODELS.__getitem__)


def fastest_ps(model: CostModel, work: ConvWork, pass_: Pass) -> int:
    return model.algorithms(work, pass_)[0].time_ps


def conv_of(channels: int, outputs: int, extent: int, window: int, stride: int, groups: int) -> Conv:
    """Return a CONV with these channels and outputs per group."""
    pad = window // 2
    out = (extent + 2 * pad - window) // stride + 1
    sides = (extent, extent, out, out, window, window, stride, stride, pad, pad)
    return Conv(channels * groups, outputs * groups, *sides, groups=groups)


def smaller(conv: Conv) -> Iterator[Conv]:
    """Return the CONV with one dimension smaller by one, or halved."""
    channels, outputs = conv.in_channels // conv.groups, conv.out_channels // conv.groups
    for less in (lambda value: value - 1, lambda value: value // 2):
        for name, value in (("in_channels", channels), ("out_channels", outputs)):
            if less(value):
                yield replace(conv, **{name: less(value) * conv.groups})
        if conv.groups > 1 and less(conv.groups):
            groups = less(conv.groups)
            yield replace(conv, groups=groups, in_channels=channels * groups, out_channels=outputs * groups)
        for extent, out, kernel, stride, pad in (
            ("in_h", "out_h", conv.kernel_h, conv.stride_h, conv.pad_h),
            ("in_w", "out_w", conv.kernel_w, conv.stride_w, conv.pad_w),
        ):
            length = less(getattr(conv, extent))
            if length + 2 * pad >= kernel and length:
                yield replace(conv, **{extent: length, out: (length + 2 * pad - kernel) // stride + 1})


def assert_not_slower(model: CostModel, conv: Conv, batch: int) -> None:
    work, less_work = ConvWork(conv, batch), [ConvWork(less, batch) for less in smaller(conv)]
    if batch > 1:
        less_work.append(ConvWork(conv, batch - 1))
    for pass_ in PASSES:
        most = fastest_ps(model, work, pass_) * LIMIT
        for less in less_work:
            assert fastest_ps(model, less, pass_) <= most, (pass_, conv, less)


@given(
    models,
    st.builds(
        conv_of,
        st.one_of(st.integers(1, 8), st.integers(1, 600)),
        st.one_of(st.integers(1, 8), st.integers(1, 600)),
        st.integers(1, 230),
        st.sampled_from((1, 2, 3, 5, 7, 11)),
        st.sampled_from((1, 2, 4)),
        st.sampled_from((1, 1, 1, 2, 32, 512)),
    ),
    st.integers(1, 300),
)
@settings(max_examples=120, deadline=None)
def test_a_smaller_conv_never_takes_longer(model: CostModel, conv: Conv, batch: int) -> None:
    assume(conv.out_h > 0)
    assert_not_slower(model, conv, batch)


@pytest.mark.parametrize("channels", [5, 128])
@pytest.mark.parametrize("window", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_smaller_conv_at_class_edges_never_takes_longer(channels: int, window: int, stride: int) -> None:
    """At 5 and 128 channels, a smaller CONV changes its class: first CONV, wide CONV."""
    for model in MODELS.values():
        for outputs in (16, 128, 512):
            for batch in (1, 64):
                assert_not_slower(model, conv_of(channels, outputs, 56, window, stride, 1), batch)


@pytest.mark.slow
def test_smaller_conv_of_the_zoo_never_takes_longer() -> None:
    networks = [load_network(name) for name in zoo.names(recorded=False)]
    convs = dict.fromkeys(layer.conv for network in networks for layer in network.layers if layer.conv is not None)
    assert len(convs) > 100
    for conv in convs:
        for key in (("titan-x", "cudnn4"), ("v100", "cudnn7")):
            assert_not_slower(MODELS[key], conv, 64)


@given(models, st.integers(1, 8192), st.integers(1, 8192), st.integers(1, 8192), st.integers(1, 64))
@settings(max_examples=120, deadline=None)
def test_a_smaller_product_never_takes_longer(model: CostModel, rows: int, cols: int, inner: int, count: int) -> None:
    product = MatmulWork(rows, cols, inner, count)
    for pass_ in PASSES:
        most = model.product_ps(product, pass_) * LIMIT
        for name in ("rows", "cols", "inner", "count"):
            for less in (getattr(product, name) - 1, getattr(product, name) // 2, 1):
                if less:
                    assert model.product_ps(replace(product, **{name: less}), pass_) <= most, name


def test_one_output_takes_no_longer_than_a_thousand() -> None:
    """FC layers with 4096 inputs and 64 rows on a Titan X."""
    model = MODELS["titan-x", "cudnn4"]
    for pass_ in PASSES:
        assert model.product_ps(MatmulWork(64, 1, 4096), pass_) < model.product_ps(MatmulWork(64, 1000, 4096), pass_)


def test_depthwise_is_bound_by_memory_in_every_pass() -> None:
    """MobileNet's first depthwise CONV, batch 64, on a V100: 411 MB each, so no pass takes far longer than another."""
    conv = conv_of(1, 1, 112, 3, 1, 32)
    spent = [fastest_ps(MODELS["v100", "cudnn7"], ConvWork(conv, 64), pass_) for pass_ in PASSES]
    assert max(spent) < 1.1 * min(spent)
    assert min(spent) / 1e12 > ConvWork(conv, 64).bytes / 900e9


def language_model(kind: str, tokens: int, vocabulary: int, heads: int, each: int, causal: bool) -> Network:
    """Return layers of every kind that language models have."""
    net, wide = NetworkBuilder("language", (tokens,)), heads * each
    start = net.add("embedding", vocabulary=vocabulary, features=wide)
    start = net.add("positions", rows=tokens)
    if kind == "lstm":
        net.add("lstm", features=wide)
    else:
        packed = net.add("copy", inputs=net.add("fc", features=3 * wide))
        query, key, value = (net.add("part", inputs=packed, of=3, number=number) for number in range(3))
        if kind == "attention":
            net.add("attention", inputs=[query, key, value], heads=heads, causal=causal)
        else:
            net.add("scale", inputs=query)
            net.add("matmul", inputs=[net.last, key], heads=heads, transposed=True)
            net.add("mask", heads=heads)
            net.add("softmax")
            net.add("dropout")
            net.add("matmul", inputs=[net.last, value], heads=heads)
    net.add("add", inputs=[start, net.last])
    net.add("layernorm")
    net.add("fc", features=4 * wide)
    net.add("gelu")
    net.add("fc", features=vocabulary)
    net.add("softmax")
    return net.build()


@given(
    models,
    st.sampled_from(("lstm", "attention", "written out")),
    st.integers(1, 2048),
    st.integers(2, 50_000),
    st.integers(1, 16),
    st.integers(1, 128),
    st.integers(1, 64),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_layer_of_a_smaller_language_model_never_takes_longer(
    model: CostModel, kind: str, tokens: int, vocabulary: int, heads: int, each: int, batch: int, causal: bool
) -> None:
    """Each dimension of a language model is reduced by one and by half, and compared layer by layer."""
    extents = {"tokens": tokens, "vocabulary": vocabulary, "heads": heads, "each": each}
    network = language_model(kind, **extents, causal=causal)
    cases = [(network, less) for less in (batch - 1, batch // 2) if less]
    for name, extent in extents.items():
        for less in (extent - 1, extent // 2):
            if less:
                cases.append((language_model(kind, **{**extents, name: less}, causal=causal), batch))
    for pass_ in ("forward", "backward"):
        most = [model.time_ps(layer, batch, pass_) for layer in network.layers]
        for smaller_network, samples in cases:
            for layer, bound in zip(smaller_network.layers, most, strict=True):
                assert model.time_ps(layer, samples, pass_) <= bound * LIMIT, (pass_, layer.name)
