"""Weights of 4 bits: bytes by hand, and torchao's dequantisation against the same operators in PyTorch."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import bfloat16
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.quantized.linear import QuantizedLinear
from buddysim.training.quantized.nf4 import BitsandbytesWeight, TorchaoWeight

SHAPE = (128, 256)  # 32768 weights: 512 blocks, 2 blocks of scales
ROWS = 5


class Chain(Module):
    """A trained layer, then a quantised one."""

    def __init__(self, *, fused: bool = False) -> None:
        super().__init__()
        self.first = Linear(SHAPE[1], SHAPE[1], bias=False)
        self.second = QuantizedLinear(TorchaoWeight("second", SHAPE, bfloat16, fused=fused), None)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x)).sum()


def step(*, fused: bool = False) -> Tape:
    with Tape(bfloat16) as tape:
        model, x = Chain(fused=fused), tape.input((ROWS, SHAPE[1]), bfloat16)
        with tape.in_phase("forward"):
            loss = model(x)
        loss.backward()
        del loss
    return tape


def held(weight: type[TorchaoWeight] | type[BitsandbytesWeight]) -> list[int]:
    with Tape(bfloat16) as tape:
        made = (
            TorchaoWeight("w", SHAPE, bfloat16, fused=False)
            if weight is TorchaoWeight
            else BitsandbytesWeight(SHAPE, bfloat16)
        )
        sizes = [one.bytes for one in tape.storages]
        assert not any(one.requires_grad for one in made.parameters())
    return sizes


def test_torchao_holds_half_a_byte_a_byte_a_block_and_two_bytes_for_256_blocks():
    assert held(TorchaoWeight) == [16384, 512, 2 * 2, 2, 16 * 2]


def test_bitsandbytes_holds_its_tables_in_fp32():
    assert held(BitsandbytesWeight) == [16384, 512, 2 * 4, 256 * 4, 4, 16 * 4]


def test_bitsandbytes_rounds_up_to_whole_blocks():
    with Tape() as tape:
        BitsandbytesWeight((3, 23), bfloat16)
        assert [one.bytes for one in tape.storages[:3]] == [35, 2, 4]


def test_torchao_refuses_weights_that_are_no_whole_blocks():
    with Tape(), pytest.raises(BuddysimError, match="q_proj has 12288 weights: torchao quantises multiples of 16384"):
        TorchaoWeight("q_proj", (96, 128), bfloat16, fused=False)


def test_the_quantised_weight_is_saved_and_dequantised_twice():
    tape = step()
    assert [(one.bytes, one.dtype.name) for one in tape.saved if one.node == "LinearNF4Backward"] == [(16384, "uint8")]
    assert [one.phase for one in tape.operations if one.name == "stack"] == ["forward", "backward"]


def test_14_bytes_for_each_weight_live_while_torchao_dequantises():
    stack = next(one for one in step().storages if one.producer == "stack")
    tape = step()
    live = list(tape.live_bytes())
    elements, before = SHAPE[0] * SHAPE[1], live[tape.storages[tape.operations[0].writes[0].storage].allocated]
    assert stack.bytes == 2 * elements
    scales = 512 * 2
    assert live[stack.allocated] - before == 14 * elements + scales


def test_compiled_code_dequantises_in_one_kernel():
    tape = step(fused=True)
    assert [one.name for one in tape.operations].count("nf4_dequantize") == 2
    assert tape.peak_bytes() < step().peak_bytes() - 10 * SHAPE[0] * SHAPE[1]


def test_torchao_allocates_as_the_same_operators_in_pytorch():
    torch = pytest.importorskip("torch")
    from buddysim.training.networks.from_torch.cuda_rules import cuda_rules
    from tests.training.adapters.torch_adapters import Quantized
    from tests.training.transformers.compared import events_of_measured, events_of_tape, first_difference
    from tests.training.transformers.measured import measure

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(SHAPE[1], SHAPE[1], bias=False, dtype=torch.bfloat16)
            self.second = Quantized(*SHAPE, torch.bfloat16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x)).sum()

    model, x = Model(), torch.randn(ROWS, SHAPE[1], dtype=torch.bfloat16)
    with cuda_rules():
        measured = measure(model, {"x": x}, steps=1, loss_of=lambda loss: loss)
    tape = step()
    assert first_difference(events_of_measured(measured), events_of_tape(tape)) == ""
