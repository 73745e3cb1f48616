"""The operator graph: a small graph by hand, a captured one, and invalid ones."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.formats.operator_graph import (
    OperandTensor,
    Operator,
    OperatorGraph,
    SavedOperand,
    Storage,
    load_operators,
)

CAPTURED = Path(__file__).parents[2] / "traces" / "fashion-cnn.graph.json"


def tensor(storage: int, elements: int) -> OperandTensor:
    return OperandTensor(storage, 0, (elements,), (1,), "float32", 4 * elements)


# y = relu(x w) forward; dw backward reads y and x; the product passes
GRAPH = OperatorGraph(
    storages=(
        Storage(400, "input", "x"),
        Storage(40, "weight", "w"),
        Storage(80, "temporary", "product", 0, 1),
        Storage(80, "feature_map", "y", 1, 3),
        Storage(80, "gradient_map", "dy", 2, 3),
        Storage(40, "gradient", "dw", 3),
    ),
    tensors=tuple(tensor(number, elements) for number, elements in enumerate((100, 10, 20, 20, 20, 10))),
    operators=(
        Operator("aten.mm.default", "forward", inputs=(0, 1), outputs=(2,), flops=400, module="fc"),
        Operator("aten.relu.default", "forward", inputs=(2,), outputs=(3,), module="relu"),
        Operator("aten.ones.default", "backward", outputs=(4,)),
        Operator("aten.mm.default", "backward", inputs=(3, 4, 0), outputs=(5,), flops=400, module="fc", forward=0),
        Operator("aten.add_.Tensor", "optimizer", inputs=(1, 5), outputs=(1,)),
    ),
    iteration=7,
    saved_operands=(
        SavedOperand(0, 0, "MmBackward0"),
        SavedOperand(1, 0, "MmBackward0"),
        SavedOperand(3, 1, "ReluBackward0"),
    ),
    batch=10,
)


def test_lifetimes_of_a_small_graph() -> None:
    assert GRAPH.live_bytes() == [520, 600, 600, 640, 480]
    assert GRAPH.peak_bytes == 640
    assert GRAPH.live_bytes(["feature_map", "temporary"]) == [80, 160, 80, 80, 0]
    assert GRAPH.bytes_by_role()["gradient"] == 40
    assert (GRAPH.readers(0), GRAPH.writers(1), GRAPH.readers(4)) == ((0, 3), (4,), (3,))
    assert GRAPH.saved == (0, 3)  # an input that is kept, too; no weight
    assert GRAPH.idle(3) == (2, 2)
    assert GRAPH.idle(0) == (1, 2)
    assert GRAPH.idle(4) is None


def test_graph_round_trips_through_its_file(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_bytes(GRAPH.to_json())
    assert load_operators(tmp_path / "g.json") == GRAPH


def test_a_captured_graph() -> None:
    graph = load_operators(CAPTURED)
    convolutions = [o for o in graph.operators if o.name == "aten.convolution.default"]
    assert [o.module for o in convolutions] == [f"conv{n}" for n in range(1, 6)]
    # batch 32; 3 x 3 filters; two FLOPs a multiply-add
    assert [o.flops for o in convolutions] == [
        2 * 32 * 9 * inputs * outputs * side**2
        for inputs, outputs, side in ((1, 16, 28), (16, 16, 28), (16, 32, 14), (32, 32, 14), (32, 64, 7))
    ]
    saved = {graph.storages[number].name: graph.storages[number].bytes for number in graph.saved}
    # ReLU and max pooling keep their outputs, and the next CONV reads them; CONV's own output passes
    assert saved["relu1: relu"] == 4 * 32 * 16 * 28 * 28
    assert saved["pool2: max_pool2d_with_indices"] == 4 * 32 * 16 * 14 * 14
    assert not any("convolution" in name for name in saved)
    weights = sum(s.bytes for s in graph.storages if s.role == "weight")
    gradients = [s for s in graph.storages if s.role == "gradient"]  # the last iteration's, dropped first, and its own
    assert [sum(s.bytes for s in gradients if (s.alloc_operator is None) is old) for old in (True, False)] == [
        weights
    ] * 2
    parameters = 9 * (16 + 256 + 512 + 1024 + 2048) + 16 + 16 + 32 + 32 + 64 + 576 * 128 + 128 + 1290
    assert weights == 4 * parameters
    backward = [n for n, o in enumerate(graph.operators) if o.phase == "backward" and o.kind == "compute"]
    assert sum(graph.operators[n].forward is not None for n in backward) >= len(backward) - 1
    alive = graph.live_bytes()
    assert len(alive) == len(graph.operators)
    assert min(alive) >= weights
    live_bytes = [0] * len(graph.operators)  # the same, counted operator by operator
    for number in range(len(graph.operators)):
        for storage in graph.storages:
            if (storage.alloc_operator or 0) <= number and (
                storage.free_operator is None or number <= storage.free_operator
            ):
                live_bytes[number] += storage.bytes
    np.testing.assert_array_equal(alive, live_bytes)


def changed(path: tuple[Any, ...], value: object) -> bytes:
    content = json.loads(GRAPH.to_json())
    at = content
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("format",), "else", "format"),
        (("version",), 1, "version"),
        (("extra",), 1, "extra"),
        (("storages", 0, "role"), "food", "storages[0].role: expected one of weight, buffer"),
        (("storages", 0, "bytes"), -1, "storages[0].bytes: expected at least 0, got -1"),
        (("storages", 2, "free_operator"), 9, "storage 2: lives from 0 to 9: there are 5 operators"),
        (("storages", 3, "free_operator"), 0, "storage 3: freed at operator 0, before its allocation at operator 1"),
        (
            ("storages", 2, "alloc_operator"),
            1,
            "operator 0: uses tensor 2 while its storage 'product' is not allocated",
        ),
        (("storages", 3, "free_operator"), 2, "operator 3: uses tensor 3 while its storage 'y' is not allocated"),
        (("tensors", 1, "storage"), 6, "tensor 1: lies in storage 6: there are 6"),
        (("tensors", 1, "offset"), 4, "tensor 1: reaches beyond the 40 bytes"),
        (("tensors", 1, "strides"), [], "tensor 1: has 1 axes and 0 strides"),
        (("operators", 0, "inputs"), [6], "operator 0: names tensor 6: there are 6"),
        (("operators", 3, "forward"), 3, "operator 3: differentiates operator 3, which comes after it"),
        (
            ("operators", 3, "phase"),
            "sideways",
            "operators[3].phase: expected one of forward, backward, optimizer, got 'sideways'",
        ),
        (("saved_operands", 0, "tensor"), 6, "saved operand 0: names tensor 6 of 6"),
        (("tensors", 1, "doubled"), [1, 2], "tensor 1: has 1 axes, and 2 at twice the batch"),
    ],
)
def test_invalid_graph_is_refused(tmp_path: Path, path: tuple[Any, ...], value: object, problem: str) -> None:
    file = tmp_path / "g.json"
    file.write_bytes(changed(path, value))
    with pytest.raises(BuddysimError) as caught:
        load_operators(file)
    assert str(caught.value).startswith(f"{file}: operator graph: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.data())
def test_damaged_text_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    text = bytearray(GRAPH.to_json())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.mktemp("damaged") / "g.json"
    file.write_bytes(bytes(text))
    try:
        graph = load_operators(file)
    except BuddysimError as error:
        assert "\n" not in str(error)
    else:
        assert len(graph.live_bytes()) == len(graph.operators)


def test_no_file_and_no_operators(tmp_path: Path) -> None:
    with pytest.raises(BuddysimError, match="can't read"):
        load_operators(tmp_path / "none.json")
    empty = dataclasses.replace(GRAPH, storages=(), tensors=(), operators=(), saved_operands=())
    assert (empty.peak_bytes, empty.saved) == (0, ())
