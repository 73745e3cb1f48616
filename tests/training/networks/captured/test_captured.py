"""Networks of captured scripts: a small graph by hand, at its batch and at others, and the shipped capture."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.formats.operator_graph import OperandTensor, Operator, OperatorGraph, SavedOperand, Storage
from buddysim.training import simulate
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.records import AllocationEvent, FreeEvent, Operand, Product
from buddysim.training.iteration.recorded_allocator import two_iterations
from buddysim.training.named_network import load_network
from buddysim.training.networks.captured.gpu_rules import UpdateTemporary, launched_together, update_temporaries
from buddysim.training.networks.captured.known_operators import is_generic
from buddysim.training.networks.captured.network import CapturedNetwork
from buddysim.training.networks.captured.other_batch import OtherBatch
from buddysim.training.networks.captured.products import products_of
from buddysim.training.networks.captured.remarks import generic_fractions
from buddysim.training.networks.captured.tape import tape_of_graph
from buddysim.training.networks.recorded_facts import recorded_facts
from tests.formats.test_operator_graph import CAPTURED


def tensor(storage: int, *shape: int, doubled: tuple[int, ...] | None = None) -> OperandTensor:
    size = 4
    for extent in shape:
        size *= extent
    strides = (shape[1], 1) if len(shape) == 2 else (1,) * len(shape)
    return OperandTensor(storage, 0, shape, strides, "float32", size, doubled)


# x (8, 4) times w (4, 16), its dropout's noise and product; the gradient of w; last iteration's gradient goes first
GRAPH = OperatorGraph(
    storages=(
        Storage(128, "input", "x", doubled=256),
        Storage(256, "weight", "weight: fc.weight"),
        Storage(256, "gradient", "gradient: fc.weight", None, 0),
        Storage(512, "feature_map", "fc: mm", 0, 4, 1024),
        Storage(512, "feature_map", "drop: empty_like", 1, 4, 1024),
        Storage(512, "temporary", "drop: mul", 2, 3, 1024),
        Storage(256, "gradient", "gradient: fc.weight", 4),
        Storage(1000, "held", "held"),
    ),
    tensors=(
        tensor(0, 8, 4, doubled=(16, 4)),
        tensor(1, 4, 16),
        tensor(3, 8, 16, doubled=(16, 16)),
        tensor(4, 8, 16, doubled=(16, 16)),
        tensor(5, 8, 16, doubled=(16, 16)),
        tensor(6, 4, 16),
    ),
    operators=(
        Operator("aten.mm.default", "forward", "compute", "fc", None, (0, 1), (2,), 1024, doubled=2048),
        Operator("aten.bernoulli_.float", "forward", "compute", "drop", None, (), (3,)),
        Operator("aten.mul.Tensor", "forward", "compute", "drop", None, (2, 3), (4,)),
        Operator("aten.frobnicate.default", "backward", "compute", "drop", 2, (4, 3), (2,)),
        Operator("aten.mm.default", "backward", "compute", "fc", 0, (0, 2), (5,), 1024, doubled=2048),
        Operator("aten.addcmul_.default", "optimizer", "compute", "", None, (1, 5), (1,)),
    ),
    iteration=1,
    saved_operands=(SavedOperand(0, 0, "MmBackward0", "fc"), SavedOperand(3, 1, "MulBackward0", "drop")),
    batch=8,
    provenance={"optimizer": "SGD"},
)


def test_sizes_at_another_batch() -> None:
    other = OtherBatch(8, 12)
    assert other.size(100, 200) == 150  # in proportion
    assert other.size(100, 150) == 125  # a part of it
    assert other.size(64, 256) == 144  # of all samples with each other: 64 * (12 / 8)^2
    assert other.size(100, None) == other.size(100, 100) == 100
    assert other.shape(tensor(0, 8, 4, doubled=(16, 4))) == (12, 4)
    assert OtherBatch(8, 8).size(100, 200) == 100


def test_the_tape_has_the_captured_lifetimes() -> None:
    tape = tape_of_graph(GRAPH, OtherBatch(8, 8), as_on_gpu=False)
    # x 128, w 256, held 1000, and the product and its noise of 512 each with the result of 512
    assert tape.peak_bytes() == GRAPH.peak_bytes == 128 + 256 + 1000 + 3 * 512
    assert [one.kind for one in tape.storages] == [
        "input", "parameter", "gradient", "temporary", "activation", "temporary", "gradient", "held",
    ]  # fmt: skip
    assert [one.name for one in tape.operations][:3] == ["mm", "bernoulli_", "mul"]
    assert (tape.saved[0].node, tape.storages[tape.saved[0].storage].label) == ("MmBackward0", "x")


def test_a_gpu_stores_noise_in_bytes() -> None:
    tape = tape_of_graph(GRAPH, OtherBatch(8, 8))
    assert tape.storages[4].bytes == 128
    assert tape.peak_bytes() == 128 + 256 + 1000 + 2 * 512 + 128
    assert "bernoulli_" not in [one.name for one in tape.operations]  # the kernel that multiplies makes it


def test_twice_the_batch() -> None:
    tape = tape_of_graph(GRAPH, OtherBatch(8, 16), as_on_gpu=False)
    assert tape.peak_bytes() == 256 + 256 + 1000 + 3 * 1024
    assert tape.operations[0].products == (Product(16, 16, 4, 1),)
    assert tape.operations[0].flops == 2048


def test_two_iterations_are_equal() -> None:
    """What the second one frees of the first is there again."""
    live: dict[int, int] = {}
    for event in two_iterations(tape_of_graph(GRAPH, OtherBatch(8, 8))):
        if isinstance(event, AllocationEvent):
            assert event.storage not in live
            live[event.storage] = event.bytes
        elif isinstance(event, FreeEvent):
            del live[event.storage]


def test_a_captured_network() -> None:
    network = CapturedNetwork(GRAPH, "small")
    assert (network.parameters, network.captured_batch, network.optimizer) == (64, 8, "sgd")
    assert [layer.name for layer in network.at(8).layers] == ["input", "fc", "drop"]
    assert network.at(8).layers[1].saved_weight_bytes == 0
    with pytest.raises(BuddysimError, match="captured with SGD: expected none"):
        simulate(network, 8, "a100-40", "eager", optimizer="adamw")


def test_generic_operators_are_counted() -> None:
    assert is_generic("frobnicate")
    assert not is_generic("add_")
    network = CapturedNetwork(GRAPH, "small")
    result = simulate(network, 8, "a100-40", "eager")
    assert "frobnicate" in result.provenance["assumptions"]["generic"]
    assert result.provenance["optimizer"] == "SGD"
    time, memory = generic_fractions(network.at(8).tape, result.outcome.cost.operation_ps)
    assert 0.05 < time < 0.5
    assert memory == 0


def test_a_difference_from_the_captures_own_peak_is_said() -> None:
    said = simulate(CapturedNetwork(GRAPH, "small"), 8, "a100-40", "eager").provenance["assumptions"]["capture"]
    assert said.startswith("Eager's peak of tensors is -13.2%")  # 2,536 of 2,920 bytes
    other = simulate(CapturedNetwork(GRAPH, "small"), 16, "a100-40", "eager").provenance["assumptions"]
    assert "capture" not in other
    # w of 256 bytes and the held 1,000, of these with x, noise of 256 bytes each, product and result of 1,024 each
    assert other["batch"].startswith("Batch 16 from a capture of 8: 33% of memory at the peak ")
    assert "follow the data" not in other["batch"]
    known = dataclasses.replace(GRAPH, provenance={"optimizer": "SGD", "by_extents": "nonzero"})
    assert (
        simulate(CapturedNetwork(known, "small"), 16, "a100-40", "eager")
        .provenance["assumptions"]["batch"]
        .endswith("Results of nonzero follow the data: as many for each sample as captured.")
    )


def test_modules_say_how_much_is_generic() -> None:
    """Of dropout's module all is: two tensors of 512 bytes, and the noise in a byte an element."""
    generic = dataclasses.replace(GRAPH.operators[2], name="aten.frobnicate.default")
    graph = dataclasses.replace(GRAPH, operators=(*GRAPH.operators[:2], generic, *GRAPH.operators[3:]))
    fc, drop = recorded_facts(CapturedNetwork(graph, "small"), 8)["per_layer"][1:]
    assert (fc["operand_bytes"], fc["generic_operand_bytes"]) == (128 + 256 + 512, 0)
    assert (drop["operand_bytes"], drop["generic_operand_bytes"]) == (512 + 128 + 512, 512 + 128 + 512)


def test_an_unknown_batch() -> None:
    network = CapturedNetwork(dataclasses.replace(GRAPH, batch=0), "small")
    with pytest.raises(BuddysimError, match="doesn't know its batch"):
        network.at(4)


def test_no_iteration() -> None:
    empty = OperatorGraph((), (), ())
    with pytest.raises(BuddysimError, match="no operator of a forward pass"):
        CapturedNetwork(empty, "nothing")


def operand(*shape: int) -> Operand:
    return Operand(0, shape, (1,) * len(shape), float32)


@pytest.mark.parametrize(
    ("name", "reads", "writes", "flops", "expected"),
    [
        ("addmm", [(5,), (7, 3), (3, 5)], [(7, 5)], 210, [(7, 5, 3, 1)]),
        ("bmm", [(2, 7, 3), (2, 3, 5)], [(2, 7, 5)], 420, [(7, 5, 3, 2)]),
        # 2 samples of 4 x 4 positions, 6 channels, 3 x 3 filters over 3 channels
        ("convolution", [(2, 3, 4, 4), (6, 3, 3, 3)], [(2, 6, 4, 4)], 2 * 32 * 6 * 27, [(32, 6, 27, 1)]),
        # the backward pass, by its FLOPs: as many as a product of the gradient's positions
        ("convolution_backward", [(2, 6, 4, 4)], [(6, 3, 3, 3)], 2 * 54 * 3 * 64, [(54, 3, 64, 1)]),
        ("mkldnn_rnn_layer", [(9, 2, 8), (16, 8), (16, 4)], [(9, 2, 4)], 0, [(18, 16, 8, 1), (2, 16, 4, 9)]),
        ("frobnicate", [(4,)], [(4,)], 0, []),
    ],
)
def test_products(
    name: str, reads: list[tuple[int, ...]], writes: list[tuple[int, ...]], flops: int, expected: list[tuple[int, ...]]
) -> None:
    products = products_of(name, [operand(*one) for one in reads], [operand(*one) for one in writes], flops)
    assert [tuple(one) for one in products] == expected


def test_the_shipped_capture_trains() -> None:
    network = load_network(CAPTURED)
    assert (network.name, network.parameters) == ("fashion-cnn", 110_010)
    plain = simulate(network, 32, "rtx-4090", "eager")
    twice = simulate(network, 64, "rtx-4090", "eager")
    assert plain.counters["memory.peak_bytes"] < twice.counters["memory.peak_bytes"]
    assert simulate(network, 32, "rtx-4090", "activation-checkpointing").counters["fits"]


def test_a_damaged_operator_is_one_line(tmp_path: Path) -> None:
    bad = dataclasses.replace(
        GRAPH,
        operators=(dataclasses.replace(GRAPH.operators[0], name="aten._scaled_dot_product_x.y"), *GRAPH.operators[1:]),
    )
    (tmp_path / "x.graph.json").write_bytes(bad.to_json())
    with pytest.raises(BuddysimError, match="its tensors are none that it can have"):
        load_network(tmp_path / "x.graph.json").at(8)


def test_an_update_is_launched_for_all_weights_at_once() -> None:
    last = GRAPH.operators[-1]
    counter = dataclasses.replace(last, name="aten.add_.Tensor", inputs=(6,), outputs=(6,))
    several = dataclasses.replace(
        GRAPH,
        tensors=(*GRAPH.tensors, tensor(7)),
        operators=(*GRAPH.operators, counter, dataclasses.replace(last, inputs=(5, 1), outputs=(5,))),
    )
    assert launched_together(several) == {5: (5, 7)}
    (update,) = [one for one in tape_of_graph(several, OtherBatch(8, 8)).operations if one.phase == "optimizer"]
    assert [one.storage for one in update.reads] == [1, 6]
    assert [one.storage for one in update.writes] == [1, 6]
    loop = tape_of_graph(several, OtherBatch(8, 8), as_on_gpu=False).operations
    assert len([one for one in loop if one.phase == "optimizer"]) == 3  # as the CPU runs it


def test_temporaries_of_an_update_are_those_of_all_weights() -> None:
    """Two weights: a root each, divided into another tensor, added. On a GPU both roots live, divided in place."""
    last, size = GRAPH.operators[-1], 256
    steps = [("sqrt.default", (1,), (6,)), ("div.Tensor", (6,), (7,)), ("addcdiv_.default", (1, 7), (1,))]
    steps += [("sqrt.default", (1,), (8,)), ("div.Tensor", (8,), (9,)), ("addcdiv_.default", (1, 9), (1,))]
    operators = [dataclasses.replace(last, name=f"aten.{n}", inputs=i, outputs=o) for n, i, o in steps]
    made = [(6, 7), (7, 8), (9, 10), (10, 11)]  # operators that allocate and free the four temporaries
    graph = dataclasses.replace(
        GRAPH,
        storages=(*GRAPH.storages, *(Storage(size, "temporary", f"t{a}", a, f) for a, f in made)),
        tensors=(*GRAPH.tensors, *(tensor(8 + n, 4, 16) for n in range(4))),
        operators=(*GRAPH.operators, *operators),
    )
    lives = update_temporaries(graph, launched_together(graph))
    assert lives == {
        8: UpdateTemporary(6, 8, False),
        9: UpdateTemporary(7, 8, True),
        10: UpdateTemporary(6, 8, False),
        11: UpdateTemporary(7, 8, True),
    }
    tape = tape_of_graph(graph, OtherBatch(8, 8))
    assert [tape.storages[n].bytes for n in lives] == [size, 0, size, 0]
    weight_by_weight = tape_of_graph(graph, OtherBatch(8, 8), own_kernels=False)
    assert [weight_by_weight.storages[n].bytes for n in lives] == [size] * 4
