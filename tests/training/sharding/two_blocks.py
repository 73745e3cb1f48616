"""A model of two blocks with round numbers, divided among GPUs: each block takes 10 us forward and 20 us backward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from buddysim.machine.training_table import HostLinkConfig
from buddysim.training.autograd import Module, Parameter, Tape, Tensor
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.records import Collective, Product
from buddysim.training.iteration.program import Program
from buddysim.training.iteration.recorded_program import recorded_program
from buddysim.training.networks.recorded.from_tape import network_from_tape
from buddysim.training.sharding.data_parallel import DataParallel
from buddysim.training.sharding.fully_sharded import FsdpPolicy, FullySharded
from tests.training.saving.toy import HOST_RATES, LAUNCH_PS

NANOSECOND, MICROSECOND = 10**3, 10**6
FORWARD, BACKWARD = Product(10_000, 1, 1, 1), Product(20_000, 1, 1, 1)
#: Bytes of a block's weight, and of what is outside of blocks.
BLOCK, REST = 4000, 8


class _Work(Function):
    def compute(self, x: Tensor, weight: Tensor) -> Tensor:
        result = x.tape.empty(x.shape, x.dtype, "work")
        x.tape.launch("work", (x, weight), (result,), (FORWARD,))
        self.shapes = x.shape, weight.shape, x.dtype
        return result

    def backward(self, gradient: Tensor) -> Any:
        of_x, of_weight, dtype = self.shapes
        results = self.tape.empty(of_x, dtype, "work_backward"), self.tape.empty(of_weight, dtype, "work_backward")
        self.tape.launch("work_backward", (gradient,), results, (BACKWARD,))
        return results


class _Block(Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter((BLOCK // 4,))

    def forward(self, x: Tensor) -> Tensor:
        return _Work.apply(x, self.weight)


class _Model(Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [_Block(), _Block()]
        self.start = Parameter((REST // 4,))

    def forward(self) -> Tensor:
        x: Tensor = self.start
        for layer in self.layers:
            x = layer(x)
        return x.sum()


class TableCost:
    """Kernels take a nanosecond for each row of products; collectives what a table says of their kind and bytes."""

    def __init__(self, collectives: Mapping[tuple[str, int], int]) -> None:
        self.collectives = collectives

    def operation_ps(self, work: Any) -> int:
        return sum(NANOSECOND * rows for rows, *_ in work.products)

    def launch_ps(self, work: Any) -> int:
        return 0

    def collective_ps(self, collective: Collective) -> int:
        return MICROSECOND * self.collectives.get((collective.kind, collective.bytes), 0)


def recorded(kind: str) -> Tape:
    """A step on two GPUs, ``"fsdp"`` or ``"ddp"``."""
    with Tape() as tape:
        model = _Model()
        model.name_scopes()
        parallel = DataParallel(2, BLOCK, BLOCK)
        step = SimpleNamespace(model=model, tape=tape, last_micro_step=True)
        if kind == "fsdp":
            FullySharded(tape, model, FsdpPolicy(2))
        else:
            parallel.model_built(cast(Any, step))
        tape.settle()
        with tape.in_phase("forward"):
            loss = model()
        if kind == "fsdp":
            loss.backward()
        else:
            with parallel.backward(cast(Any, step)):
                loss.backward()
        del loss
        model.zero_grad()
    return tape


def program_of(tape: Tape, cost: TableCost) -> Program:
    """The step as a program whose first kernel starts at once."""
    link = HostLinkConfig(d2h_bandwidth="1 GB/s", h2d_bandwidth="1 GB/s")
    program = recorded_program(network_from_tape(tape, "two blocks", 1, "fp32"), cast(Any, cost), link, HOST_RATES)
    first = next(one for one in program.steps if one.compute_ps)
    begun = replace(first, compute_ps=first.compute_ps - LAUNCH_PS)
    return replace(program, steps=tuple(begun if one is first else one for one in program.steps))
