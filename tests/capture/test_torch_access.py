"""Access models: coalescing equals the reference model, and reads and writes equal simple counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.capture.torch.access.coalesce import coalesce
from buddysim.capture.torch.access.convolution import Convolution
from buddysim.capture.torch.access.elementwise import concatenate, elementwise
from buddysim.capture.torch.access.launch import ModelledKernel, write_launch
from buddysim.capture.torch.access.matmul import _vector, matmul
from buddysim.capture.torch.access.normalisation import channel_passes
from buddysim.capture.torch.access.operators import OperatorCall, launches_of
from buddysim.capture.torch.access.optimizer import update_parameters
from buddysim.capture.torch.access.pooling import PoolingWindow, pool, pool_backward
from buddysim.capture.torch.access.row_kernels import gather_rows, row_passes, scatter_add_rows
from buddysim.capture.torch.access.tensors import TensorView
from buddysim.trace import OP_ATOMIC, OP_LOAD, OP_STORE, Provenance, TraceWriter, open_trace, verify_trace
from tests.reference.capture.torch.ref_coalesce import ref_coalesce

BASE = 0x7F00_0000_0000


@given(st.sampled_from([1, 2, 4, 8, 16]), st.booleans(), st.data())
def test_lines_agree_with_reference_model(size: int, store: bool, data: st.DataObject) -> None:
    lane_address = st.one_of(
        st.just(-1), st.integers(0, 40).map(lambda number: number * size), st.integers(0, 4096 // size)
    )
    lanes = np.array(
        data.draw(st.lists(st.lists(lane_address, min_size=32, max_size=32), min_size=1, max_size=3)), np.int64
    )
    lanes = np.where(lanes >= 0, lanes // size * size, -1)
    n = len(lanes)
    counts, lines = coalesce(lanes, np.full(n, size, np.uint8), np.full(n, store, np.uint8))
    right = [ref_coalesce(row.tolist(), size, store) for row in lanes]
    assert counts.tolist() == [len(row) for row in right]
    assert lines.tolist() == [line for row in right for line in row]


def tensor(number: int, *shape: int, dtype: str = "float32") -> TensorView:
    """Return a contiguous tensor, 16 MiB after that of the previous number."""
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return TensorView(BASE + (number << 24), shape, tuple(strides), dtype)


def touched(launches: list[ModelledKernel] | ModelledKernel, folder: Path) -> Counter[tuple[int, int]]:
    """Return how often each element of 4 B is accessed, by kind and address."""
    accesses: Counter[tuple[int, int]] = Counter()
    for launch in launches if isinstance(launches, list) else [launches]:
        blocks = np.arange(launch.blocks, dtype=np.int64).reshape(-1, 1, 1)
        for access in launch.accesses(blocks):
            lanes = np.broadcast_to(access.addresses, (launch.blocks, launch.warps, 32)).reshape(-1)
            for address in lanes[lanes >= 0].tolist():
                for byte in range(0, access.bytes_per_lane, 4):
                    accesses[access.kind, address + byte] += 1
        with TraceWriter(folder / "t.bin", Provenance("test")) as writer:
            for number in range(8):
                writer.add_allocation(f"{number}", BASE + (number << 24), 1 << 24)
            write_launch(writer, launch, 0)
        with open_trace(folder / "t.bin") as trace:
            verify_trace(trace)
    return accesses


def elements(view: TensorView) -> list[int]:
    """Return the addresses of all elements of a tensor."""
    offsets = sum(np.arange(n).reshape([-1 if a == axis else 1 for a in range(len(view.shape))]) * stride
                  for axis, (n, stride) in enumerate(zip(view.shape, view.strides, strict=True)))  # fmt: skip
    return (view.address + 4 * np.asarray(offsets).reshape(-1)).tolist()


def assert_each(accesses: Counter[tuple[int, int]], kind: int, view: TensorView, times: int | None = 1) -> None:
    """Assert that every element of a tensor is accessed `times` times; None: at least once."""
    counts = [accesses.pop((kind, address), 0) for address in elements(view)]
    assert min(counts) > 0
    if times is not None:
        assert set(counts) == {times}


@pytest.mark.parametrize("shape", [(300, 200, 70), (5, 33, 9), (130, 260, 64)])
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_reads_each_row_once_for_each_column_of_tiles(
    shape: tuple[int, int, int], turned: bool, tmp_path: Path
) -> None:
    m, n, k = shape
    left, right, out = tensor(0, m, k), tensor(1, k, n), tensor(2, m, n)
    if turned:
        left, right = TensorView(BASE, (m, k), (1, m)), TensorView(BASE + (1 << 24), (k, n), (1, k))
    launch = matmul("sgemm", left, right, out)
    rows, columns, _ = map(int, launch.name.split()[-1].split("x"))
    accesses = touched(launch, tmp_path)
    assert_each(accesses, OP_LOAD, left, -(-n // columns))
    assert_each(accesses, OP_LOAD, right, -(-m // rows))
    assert_each(accesses, OP_STORE, out)
    assert {kind for kind, _ in accesses} <= {3}  # barriers access nothing


@pytest.mark.parametrize(
    ("shape", "strides", "address", "expected"),
    [
        ((4, 8), (8, 1), BASE, 4),
        ((4, 6), (8, 1), BASE, 1),  # rows of 6 elements
        ((4, 8), (10, 1), BASE, 1),  # every second row begins between two groups of 4
        ((4, 8), (16, 2), BASE, 1),
        ((4, 8), (8, 1), BASE + 8, 1),
    ],
)
def test_a_thread_takes_four_elements_where_all_rows_allow_it(
    shape: tuple[int, ...], strides: tuple[int, ...], address: int, expected: int
) -> None:
    assert _vector(TensorView(address, shape, strides), 1) == expected


@pytest.mark.parametrize(
    ("size", "stride", "padding", "edge"), [(3, 1, 1, 9), (1, 1, 0, 8), (3, 2, 1, 9), (5, 1, 2, 8), (1, 2, 0, 8)]
)
def test_convolution_accesses_match_its_definition(
    size: int, stride: int, padding: int, edge: int, tmp_path: Path
) -> None:
    images, inputs, outputs = 2, 5, 7
    out_edge = (edge + 2 * padding - size) // stride + 1
    data, filters = tensor(0, images, inputs, edge, edge), tensor(1, outputs, inputs, size, size)
    out = tensor(2, images, outputs, out_edge, out_edge)
    used: Counter[tuple[int, int]] = Counter()  # filter positions per input pixel
    for p in range(out_edge):
        for q in range(out_edge):
            for r in range(size):
                for s in range(size):
                    h, w = p * stride - padding + r, q * stride - padding + s
                    if 0 <= h < edge and 0 <= w < edge:
                        used[h, w] += 1
    convolution = Convolution(data, filters, out, (stride, stride), (padding, padding), (1, 1))
    forward = touched(convolution.forward(), tmp_path)
    assert_each(forward, OP_STORE, out)
    for (h, w), times in used.items():
        assert forward[OP_LOAD, int(data.element_address(1, 2, h, w))] == times
    backward = touched(convolution.backward_data(), tmp_path)
    assert_each(backward, OP_STORE, data)
    filter_slope = touched(list(convolution.backward_filter()), tmp_path)
    for (h, w), times in used.items():
        assert filter_slope[OP_LOAD, int(data.element_address(1, 2, h, w))] == times
    written = sum(filter_slope[kind, address] for kind in (OP_STORE, OP_ATOMIC) for address in elements(filters))
    assert written >= filters.elements


@pytest.mark.parametrize("count", [4096, 4099, 3])
def test_elementwise_kernels_touch_each_element_once(count: int, tmp_path: Path) -> None:
    first, second, out = tensor(0, count), tensor(1, count), tensor(2, count)
    accesses = touched(elementwise("add", [first, second], [out]), tmp_path)
    for view in (first, second):
        assert_each(accesses, OP_LOAD, view)
    assert_each(accesses, OP_STORE, out)
    assert not accesses


def test_broadcast_operands_and_views(tmp_path: Path) -> None:
    data = TensorView(BASE, (4, 6, 10), (120, 20, 2))
    shift, out = tensor(1, 6, 1), tensor(2, 4, 6, 10)
    accesses = touched(elementwise("add", [data, shift], [out]), tmp_path)
    assert_each(accesses, OP_LOAD, data)
    assert_each(accesses, OP_LOAD, shift, 40)
    assert_each(accesses, OP_STORE, out)
    assert not accesses


def test_tensors_are_joined(tmp_path: Path) -> None:
    parts, out = [tensor(0, 3, 2, 5), tensor(1, 3, 4, 5)], tensor(2, 3, 6, 5)
    accesses = touched(concatenate("cat", parts, out, 1), tmp_path)
    for view in parts:
        assert_each(accesses, OP_LOAD, view)
    assert_each(accesses, OP_STORE, out)
    assert not accesses


@pytest.mark.parametrize("edge", [4, 5, 40])
def test_normalisation_reads_a_channel_again_only_where_registers_are_full(edge: int, tmp_path: Path) -> None:
    images = 16
    data, out = tensor(0, images, 3, edge, edge), tensor(1, images, 3, edge, edge)
    weight, mean = tensor(2, 3), tensor(3, 3)
    accesses = touched(channel_passes("bn", [data], [weight], [mean], [out]), tmp_path)
    cached_elements = 32 * 512
    per_channel = images * edge**2
    counts = [accesses.pop((OP_LOAD, address)) for address in elements(data)]
    assert set(counts) <= {1, 2}
    assert counts.count(2) == 3 * max(0, per_channel - cached_elements)
    assert_each(accesses, OP_STORE, out)
    assert_each(accesses, OP_STORE, mean)
    assert_each(accesses, OP_LOAD, weight, None)


def test_pooling_and_its_gradient_access_the_same_windows(tmp_path: Path) -> None:
    data, out = tensor(0, 2, 3, 9, 9), tensor(1, 2, 3, 4, 4)
    window = PoolingWindow((3, 3), (2, 2), (0, 0))
    accesses = touched(pool("pool", data, (out,), window), tmp_path)
    assert sum(accesses[OP_LOAD, address] for address in elements(data)) == 9 * out.elements
    assert_each(accesses, OP_STORE, out)
    back = touched(pool_backward("pool", (out,), data, window), tmp_path)
    assert sum(back[OP_LOAD, address] for address in elements(out)) == 9 * out.elements
    assert_each(back, OP_STORE, data)


@pytest.mark.parametrize("columns", [10, 3000])
def test_rows(columns: int, tmp_path: Path) -> None:
    data, out = tensor(0, 9, columns), tensor(1, 9, columns)
    accesses = touched(row_passes("softmax", [data], [out], 3), tmp_path)
    assert_each(accesses, OP_LOAD, data, 1 if columns <= 1024 else 3)
    assert_each(accesses, OP_STORE, out)
    assert not accesses  # nothing behind the last row, at which a thread block of four rows ends too late


def test_look_ups(tmp_path: Path) -> None:
    table, rows, numbers = tensor(0, 50, 12), tensor(1, 4, 12), tensor(2, 4)
    which = np.array([7, 3, 7, 49], np.int64)
    accesses = touched(gather_rows("embedding", table, numbers, which, rows), tmp_path)
    assert accesses[OP_LOAD, int(table.element_address(7, 5))] == 2
    assert accesses[OP_LOAD, int(table.element_address(8, 5))] == 0
    assert_each(accesses, OP_STORE, rows)
    added = touched(scatter_add_rows("embedding", rows, numbers, which, table), tmp_path)
    assert added[OP_ATOMIC, int(table.element_address(7, 5))] == 2


def test_an_update_of_many_parameters(tmp_path: Path) -> None:
    sizes = (70000, 5)
    groups = []
    for number, size in enumerate(sizes):
        parameter, slope, state = (tensor(3 * number + part, size) for part in range(3))
        groups.append(([parameter, slope, state], [parameter, state]))
    accesses = touched(update_parameters("sgd", groups), tmp_path)
    for read, written in groups:
        for view in read:
            assert_each(accesses, OP_LOAD, view)
        for view in written:
            assert_each(accesses, OP_STORE, view)
    assert not accesses


def test_operators_find_their_models() -> None:
    data, filters, out = tensor(0, 2, 8, 6, 6), tensor(1, 4, 8, 3, 3), tensor(2, 2, 4, 6, 6)
    arguments = {
        "stride": (1, 1),
        "padding": (1, 1),
        "dilation": (1, 1),
        "groups": 1,
        "output_mask": (False, True, False),
    }
    (forward,) = launches_of(OperatorCall("convolution", (data, filters), (out,), arguments)) or []
    assert forward.name.startswith("implicit_gemm ")
    backward = launches_of(OperatorCall("convolution_backward", (out, data, filters), (filters,), arguments)) or []
    assert any("wgrad" in launch.name for launch in backward)
    assert not any("dgrad" in launch.name for launch in backward)
    assert launches_of(OperatorCall("convolution", (data, filters), (out,), arguments | {"groups": 2})) is None
    (relu,) = launches_of(OperatorCall("relu", (data,), (data,))) or []
    assert "elementwise" in relu.name
    assert launches_of(OperatorCall("sum", (data,), (tensor(3, 8),))) is None
