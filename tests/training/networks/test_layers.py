"""Shapes, parameters and FLOPs of layers equal counts by loops."""

from __future__ import annotations

import itertools

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.training import Conv, Gemm, NetworkBuilder
from buddysim.training.networks.layer_kind import window_steps


def positions(extent: int, kernel: int, stride: int, pad: int, dilation: int) -> list[int]:
    """Return the starts of windows along one axis by sliding a window."""
    reach = dilation * (kernel - 1)
    return [start for start in range(-pad, extent + pad, stride) if start + reach < extent + pad]


def counted_multiply_adds(conv: Conv) -> int:
    """Count by loops over every output, filter element and channel of its group, for one sample."""
    rows = positions(conv.in_h, conv.kernel_h, conv.stride_h, conv.pad_h, conv.dilation_h)
    columns = positions(conv.in_w, conv.kernel_w, conv.stride_w, conv.pad_w, conv.dilation_w)
    count = 0
    for _out, _row, _column in itertools.product(range(conv.out_channels), rows, columns):
        for _in in range(conv.in_channels // conv.groups):
            for _y in range(conv.kernel_h):
                for _x in range(conv.kernel_w):
                    count += 1
    return count


small = st.integers(1, 3)


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(small, small, small),
    st.tuples(st.integers(1, 8), st.integers(1, 8)),
    st.tuples(small, small),
    st.tuples(small, small),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.booleans(),
)
def test_conv_against_loops(
    channels: tuple[int, int, int],
    extents: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int],
    dilation: tuple[int, int],
    bias: bool,
) -> None:
    groups, per_group_in, per_group_out = channels
    net = NetworkBuilder("one", (groups * per_group_in, *extents))
    rows = positions(extents[0], kernel[0], stride[0], pad[0], dilation[0])
    columns = positions(extents[1], kernel[1], stride[1], pad[1], dilation[1])
    shape = {"kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation}
    try:
        net.add("conv", channels=groups * per_group_out, groups=groups, bias=bias, **shape)
    except BuddysimError:
        assert not (rows and columns)
        return
    network = net.build()
    layer = network.layers[1]
    assert layer.conv is not None
    assert layer.output_shape == (groups * per_group_out, len(rows), len(columns))
    assert layer.flops == 2 * counted_multiply_adds(layer.conv)
    assert network.forward_flops(1, batch=5) == 5 * layer.flops
    filters = groups * per_group_out * per_group_in * kernel[0] * kernel[1]
    assert layer.parameters == filters + bias * groups * per_group_out


@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2), st.booleans())
def test_windows_against_sliding(extent: int, kernel: int, stride: int, pad: int, ceil: bool) -> None:
    """With `ceil`, windows continue while one begins inside the input or the padding before it (Caffe, PyTorch)."""
    assume(pad < kernel)
    whole = positions(extent, kernel, stride, pad, 1)
    if ceil and whole:
        reached = whole[-1] + kernel - 1
        if reached < extent + pad - 1 and whole[-1] + stride < extent:
            whole.append(whole[-1] + stride)
    assert window_steps(extent, kernel, stride, pad, ceil=ceil) == len(whole)


def test_fc_by_hand() -> None:
    """2x3x3 inputs, 5 outputs: 18 x 5 products and additions; 90 weights and 5 biases."""
    net = NetworkBuilder("fc", (2, 3, 3))
    net.add("fc", features=5)
    layer = net.build().layers[1]
    assert layer.gemms == (Gemm(m=1, n=5, k=18),)
    assert (layer.flops, layer.parameters, layer.output_shape) == (180, 95, (5,))


def test_fc_on_tokens_uses_its_weights_for_each() -> None:
    net = NetworkBuilder("fc", (7, 4))
    net.add("fc", features=3, bias=False)
    layer = net.build().layers[1]
    assert layer.gemms == (Gemm(m=7, n=3, k=4),)
    assert (layer.flops, layer.parameters, layer.output_shape) == (2 * 7 * 3 * 4, 12, (7, 3))


def test_attention_by_hand() -> None:
    """5 tokens of 8 features, 2 heads: 2 x 5x5 scores of 4 features each, weighted back to 5x8."""
    net = NetworkBuilder("attention", (5, 8))
    query, key, value = (net.add("fc", inputs=0, features=8) for _ in range(3))
    scores = net.add("matmul", inputs=[query, key], heads=2, transposed=True)
    attended = net.add("matmul", inputs=[scores, value], heads=2)
    layers = net.build().layers
    assert layers[scores].gemms == (Gemm(m=5, n=5, k=4, count=2, weights=False),)
    assert layers[attended].gemms == (Gemm(m=5, n=4, k=5, count=2, weights=False),)
    assert layers[scores].output_shape == (10, 5)
    assert layers[attended].output_shape == (5, 8)
    assert layers[scores].flops == layers[attended].flops == 2 * 2 * 5 * 5 * 4


def test_lstm_by_hand() -> None:
    """6 steps, 3 features, 4 cells projected to 2: four gates from x, from h, biases, and the projection."""
    net = NetworkBuilder("lstm", (6, 3))
    net.add("lstm", features=4, projection=2)
    layer = net.build().layers[1]
    assert layer.parameters == 16 * 3 + 16 * 2 + 16 + 4 * 2
    assert layer.gemms == (Gemm(6, 16, 3), Gemm(1, 16, 2, count=6), Gemm(1, 2, 4, count=6))
    assert layer.output_shape == (6, 2)
    assert layer.saved_bytes(batch=1) == 4 * 6 * 4 * (4 + 1 + 1)
