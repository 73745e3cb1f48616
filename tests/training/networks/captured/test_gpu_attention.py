"""Attention with dropout and LSTMs of captured graphs, as a GPU stores them: by hand, and on a script's graph."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from buddysim.formats.operator_graph import (
    OperandTensor,
    Operator,
    OperatorGraph,
    Phase,
    Role,
    SavedOperand,
    Storage,
    load_operators,
)
from buddysim.training.networks.captured.attention_pattern import find_attention
from buddysim.training.networks.captured.gpu_attention import with_fused_attention
from buddysim.training.networks.captured.gpu_recurrent import with_reserves
from buddysim.training.networks.captured.other_batch import OtherBatch
from buddysim.training.networks.captured.tape import tape_of_graph

BATCH, HEADS, TOKENS, SIZE = 2, 3, 40, 8
WIDE, SCORES = (BATCH * HEADS, TOKENS, SIZE), (BATCH * HEADS, TOKENS, TOKENS)
FEATURES = 4 * prod(WIDE)  # bytes of queries, keys, values, the result, and of each gradient


class GraphByHand:
    """A graph of one tensor for each storage."""

    def __init__(self) -> None:
        self.storages: list[Storage] = []
        self.tensors: list[OperandTensor] = []
        self.operators: list[Operator] = []

    def tensor(
        self, shape: tuple[int, ...], role: Role, lives: tuple[int | None, int | None], dtype: str = "float32"
    ) -> int:
        elements, size = prod(shape), 1 if dtype == "uint8" else 4
        self.storages.append(Storage(size * elements, role, role, *lives, 2 * size * elements))
        strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        doubled = (2 * shape[0], *shape[1:])
        self.tensors.append(OperandTensor(len(self.storages) - 1, 0, shape, strides, dtype, size * elements, doubled))
        return len(self.tensors) - 1

    def run(
        self, name: str, phase: Phase, inputs: tuple[int, ...], outputs: tuple[int, ...], forward: int | None = None
    ) -> None:
        flops = 2 * prod(SCORES) * SIZE if name == "bmm" else 0
        module = "attention" if phase != "optimizer" else ""
        self.operators.append(
            Operator(f"aten.{name}.default", phase, "compute", module, forward, inputs, outputs, flops)
        )


def attention_graph() -> OperatorGraph:
    """Return an attention with dropout, operators 0 to 7, and its backward pass, 8 to 15."""
    made = GraphByHand()
    shape = (BATCH, HEADS, TOKENS, SIZE)
    turned = (BATCH, HEADS, SIZE, TOKENS)
    query, value = (made.tensor(shape, "input", (None, None)) for _ in range(2))
    key, gradient = made.tensor(turned, "input", (None, None)), made.tensor(WIDE, "input", (None, None))
    scaled_query = made.tensor(WIDE, "feature_map", (0, 12))
    scaled_key = made.tensor((BATCH * HEADS, SIZE, TOKENS), "feature_map", (1, 13))
    scores = made.tensor(SCORES, "temporary", (2, 3))
    weights, noise = made.tensor(SCORES, "feature_map", (3, 11)), made.tensor(SCORES, "feature_map", (4, 10))
    noisy = made.tensor(SCORES, "feature_map", (6, 8))
    result = made.tensor(WIDE, "feature_map", (7, 15))
    made.run("mul", "forward", (query,), (scaled_query,))
    made.run("mul", "forward", (key,), (scaled_key,))
    made.run("bmm", "forward", (scaled_query, scaled_key), (scores,))
    made.run("_safe_softmax", "forward", (scores,), (weights,))
    made.run("bernoulli_", "forward", (), (noise,))
    made.run("div_", "forward", (noise,), (noise,))
    made.run("mul", "forward", (weights, noise), (noisy,))
    made.run("bmm", "forward", (noisy, value), (result,))
    of_value = made.tensor(shape, "gradient_map", (8, None))
    of_noisy, of_weights, of_scores = (
        made.tensor(SCORES, "gradient_map", lives) for lives in ((9, 10), (10, 11), (11, 13))
    )
    of_scaled_key, of_scaled_query = (made.tensor(WIDE, "gradient_map", lives) for lives in ((12, 14), (13, 15)))
    of_key, of_query = made.tensor(turned, "gradient_map", (14, None)), made.tensor(shape, "gradient_map", (15, None))
    made.run("bmm", "backward", (noisy, gradient), (of_value,), 7)
    made.run("bmm", "backward", (gradient, value), (of_noisy,), 7)
    made.run("mul", "backward", (of_noisy, noise), (of_weights,), 6)
    made.run("_softmax_backward_data", "backward", (of_weights, weights), (of_scores,), 3)
    made.run("bmm", "backward", (scaled_query, of_scores), (of_scaled_key,), 2)
    made.run("bmm", "backward", (of_scores, scaled_key), (of_scaled_query,), 2)
    made.run("mul", "backward", (of_scaled_key,), (of_key,), 1)
    made.run("mul", "backward", (of_scaled_query,), (of_query,), 0)
    saved = [
        SavedOperand(scaled_query, 1, "BmmBackward0", "attention"),
        SavedOperand(weights, 3, "SafeSoftmaxBackward0", "attention"),
        SavedOperand(noise, 5, "MulBackward0", "attention"),
        SavedOperand(noisy, 6, "BmmBackward0", "attention"),
    ]
    return OperatorGraph(
        tuple(made.storages), tuple(made.tensors), tuple(made.operators), 1, {}, tuple(saved), batch=BATCH
    )


def test_attention_with_dropout_is_one_kernel() -> None:
    """Queries, keys and values are there before; the peak is in the backward pass, at all three gradients.

    40 rows of statistics are padded to 64.
    """
    graph = attention_graph()
    tape = tape_of_graph(graph, OtherBatch(BATCH, BATCH))
    forward, backward = tape.operations
    assert (forward.name, backward.name) == (
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_efficient_attention_backward",
    )
    statistics = 4 * BATCH * HEADS * 64
    assert tape.peak_bytes() == 4 * FEATURES + (FEATURES + statistics) + 3 * FEATURES
    assert forward.flops == 2 * 2 * prod(SCORES) * SIZE
    assert backward.flops == 5 * 2 * prod(SCORES) * SIZE  # of two products forward five backward
    assert [(one.node[:10], one.shape[-1]) for one in tape.saved] == [("ScaledDotP", SIZE)] * 4 + [("ScaledDotP", 64)]
    on_cpu = tape_of_graph(graph, OtherBatch(BATCH, BATCH), as_on_gpu=False)
    assert on_cpu.peak_bytes() > 4 * FEATURES + 3 * 4 * prod(SCORES)  # probabilities, noise, and both


def test_attention_grows_with_the_batch() -> None:
    graph = attention_graph()
    once, thrice = (tape_of_graph(graph, OtherBatch(BATCH, batch)) for batch in (BATCH, 3 * BATCH))
    assert thrice.peak_bytes() == 3 * once.peak_bytes()
    assert thrice.operations[0].reads[0].shape == (3 * BATCH, HEADS, TOKENS, SIZE)


def test_attention_without_dropout_stays() -> None:
    """Of the probabilities themselves: the CPU has a kernel for it, which the script didn't call."""
    graph = attention_graph()
    operators = list(graph.operators)
    operators[6] = Operator("aten.mul.Tensor", "forward", "compute", "attention", None, (7,), (9,))
    changed = OperatorGraph(graph.storages, graph.tensors, tuple(operators), batch=BATCH)
    assert with_fused_attention(changed) == changed


def test_a_copy_of_queries_keys_and_values_at_once_is_none_of_the_attention() -> None:
    """The values are a part of a tensor that a copy made: it stays."""
    graph = attention_graph()
    packed = Storage(3 * FEATURES, "feature_map", "packed", 0, None, 6 * FEATURES)
    storages = [*(replace(one, alloc_operator=_next(one.alloc_operator), free_operator=_next(one.free_operator))
                  for one in graph.storages), packed]  # fmt: skip
    whole = OperandTensor(
        len(storages) - 1, 0, (3, *WIDE), (prod(WIDE), TOKENS * SIZE, SIZE, 1), "float32", 3 * FEATURES
    )
    tensors = list(graph.tensors)
    tensors[1] = replace(tensors[1], storage=whole.storage)
    copy = Operator("aten.clone.default", "forward", "compute", "attention", None, (0,), (len(tensors),))
    operators = (copy, *(replace(one, forward=_next(one.forward)) for one in graph.operators))
    changed = OperatorGraph(tuple(storages), (*tensors, whole), operators, batch=BATCH)
    fused = with_fused_attention(changed)
    names = [one.short_name for one in fused.operators if one.kind == "compute"]
    assert names == ["clone", "_scaled_dot_product_efficient_attention",
                     "_scaled_dot_product_efficient_attention_backward"]  # fmt: skip
    assert all((one.alloc_operator or 0) <= one.free_operator for one in fused.storages if one.free_operator)


def _next(number: int | None) -> int | None:
    return None if number is None else number + 1


def test_a_gradient_that_is_read_before_the_others_are_there_keeps_the_operators() -> None:
    graph = attention_graph()
    operators = list(graph.operators)
    of_value = operators[8].outputs
    operators[10] = Operator("aten.relu.default", "backward", "compute", "next", None, of_value, operators[10].outputs)
    changed = OperatorGraph(graph.storages, graph.tensors, tuple(operators), batch=BATCH)
    assert with_fused_attention(changed) == changed


def test_an_lstm_has_gates_and_cells_in_its_reserve() -> None:
    """Three steps of two samples, 5 units: 4 gates and a cell for each, in 4 bytes."""
    made = GraphByHand()
    x, hidden = made.tensor((3, 2, 7), "input", (None, None)), made.tensor((2, 5), "input", (None, None))
    of_x, of_hidden = made.tensor((20, 7), "weight", (None, None)), made.tensor((20, 5), "weight", (None, None))
    result, workspace = (
        made.tensor((3, 2, 5), "feature_map", (0, 0)),
        made.tensor((9000,), "feature_map", (0, 0), "uint8"),
    )
    made.run("mkldnn_rnn_layer", "forward", (x, of_x, of_hidden, hidden), (result, workspace))
    graph = with_reserves(OperatorGraph(tuple(made.storages), tuple(made.tensors), tuple(made.operators), batch=2))
    assert graph.storages[workspace].bytes == 3 * 2 * (4 + 1) * 5 * 4
    assert graph.tensors[workspace].extent == graph.storages[workspace].bytes
    assert graph.storages[workspace].doubled == 2 * graph.storages[workspace].bytes


def small_attention(output: Path) -> OperatorGraph:
    """Capture a model whose attention is causal and drops 10 % of the probabilities."""
    import torch

    from buddysim.capture import training

    qkv, out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD([*qkv.parameters(), *out.parameters()], lr=0.1)
    with training(output, batch=4):
        for _ in range(3):
            parts = qkv(torch.randn(4, 40, 16)).split(16, 2)
            query, key, value = (one.view(4, 40, 2, 8).transpose(1, 2) for one in parts)
            y = torch.nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=0.1, is_causal=True)
            loss = out(y.transpose(1, 2).reshape(4, 40, 16)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return load_operators(output)


@pytest.mark.slow
def test_a_scripts_attention_is_one_kernel(tmp_path: Path) -> None:
    """The mask is the kernel's, tokens lie before heads without a copy, and nothing else of the graph is changed."""
    pytest.importorskip("torch")
    from tests.capture.torch.test_scripts import apart

    graph = apart(small_attention, tmp_path / "small.graph.json")
    (pattern,) = find_attention(graph)
    fused = with_fused_attention(graph)
    names = [one.short_name for one in fused.operators if one.kind == "compute"]
    left = {"tril", "where", "bmm", "_safe_softmax", "bernoulli_", "clone", "_softmax_backward_data"} & set(names)
    assert not left
    assert fused.operators[pattern.forward[-1]].flops == 4 * 4 * 2 * 40 * 40 * 8 // 2  # causal
    for number, operator in enumerate(fused.operators):
        for tensor in (*operator.inputs, *operator.outputs):
            storage = fused.storages[fused.tensors[tensor].storage]
            if operator.kind == "compute":
                assert storage.bytes
                assert (storage.alloc_operator or 0) <= number
                assert storage.free_operator is None or number <= storage.free_operator
    outside = set(range(len(graph.operators))) - {*pattern.forward, *pattern.backward}
    changed = {one for one in outside if fused.operators[one] != graph.operators[one]}
    assert {graph.operators[one].short_name for one in changed} == {
        "clone", "ones", "tril", "scalar_tensor", "where",
    }  # fmt: skip
