"""Models of blocks with round numbers: what each computes, saves and returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from buddysim.machine.training_table import HostLinkConfig
from buddysim.training.autograd import Module, Parameter, Tape, Tensor
from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.offload import OffloadedTensors
from buddysim.training.autograd.records import Product
from buddysim.training.autograd.saved_hooks import saving_with
from buddysim.training.cost.host_rates import HostRates
from buddysim.training.cost.operators.host import HOST
from buddysim.training.iteration.recorded_program import recorded_program
from buddysim.training.iteration.schedule import IterationSchedule, schedule
from buddysim.training.networks.recorded.from_tape import network_from_tape
from buddysim.training.options.block_range import selector
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.saving.checkpointed_blocks import checkpoint_blocks

#: An operation of products with n rows takes n ns.
NANOSECOND = 1000
#: From the launch of the first operation to its start, as on a GPU (`cost.operators.host`), in ps.
LAUNCH_PS = round(HOST.launch_us * 10**6)

#: An update moves a byte in a ns, as do the drives.
HOST_RATES = HostRates(10**9, 10**9, 10**9)


@dataclass(frozen=True)
class Numbers:
    """A block: times in ns, sizes in bytes."""

    forward: int = 10_000
    backward: int = 20_000
    saved: int = 4000
    result: int = 1000


class _Work(Function):
    def compute(self, x: Tensor, numbers: Numbers) -> Tensor:
        tape = x.tape
        saved = tape.empty((numbers.saved // 4,), x.dtype, "work")
        result = tape.empty((numbers.result // 4,), x.dtype, "work")
        tape.launch("work", (x,), (saved, result), (Product(numbers.forward, 1, 1, 1),))
        self.save_for_backward(saved)
        return result

    def backward(self, gradient: Tensor) -> Any:
        shape, dtype = cast(Any, self.edges[0])[0].outputs[cast(Any, self.edges[0])[1]]
        result = self.tape.empty(shape, dtype, "work_backward")
        numbers = NUMBERS[self.scope]
        reads = (gradient, *self.saved)
        self.tape.launch("work_backward", reads, (result,), (Product(numbers.backward, 1, 1, 1),))
        return (result,)


#: Of the blocks of the model that runs, by their scopes.
NUMBERS: dict[str, Numbers] = {}


class _Block(Module):
    def __init__(self, numbers: Numbers) -> None:
        super().__init__()
        self.numbers = numbers
        self.weight = Parameter((1,))

    def forward(self, x: Tensor) -> Tensor:
        return _Work.apply(x, self.numbers)


class _Stack(Module):
    def __init__(self, blocks: Sequence[Numbers]) -> None:
        super().__init__()
        self.layers = [_Block(one) for one in blocks]
        self.start = Parameter((250,))

    def forward(self) -> Tensor:
        x: Tensor = self.start
        for layer in self.layers:
            x = layer(x)
        return x.sum()


class _Cost:
    """Times of operations, which the host launches in no time."""

    def operation_ps(self, work: Any) -> int:
        return sum(NANOSECOND * rows for rows, *_ in work.products)

    def launch_ps(self, work: Any) -> int:
        return 0


def recorded(blocks: Sequence[Numbers], rules: SavingRules) -> Tape:
    """A step of a model of blocks."""
    with Tape() as tape:
        model = _Stack(blocks)
        NUMBERS.clear()
        NUMBERS.update({f"layers.{number}": one for number, one in enumerate(blocks)})
        model.name_scopes()
        checkpoint_blocks([block for _, block in blocks_of(model)], rules.checkpoints)
        hooks = None
        if rules.offload is not None:
            selects = selector(rules.offload.ranges, [path for path, _ in blocks_of(model)])
            hooks = OffloadedTensors(tape, rules.offload.settings, selects)
        with tape.in_phase("forward"), saving_with(tape, hooks):
            loss = model()
        loss.backward()
        del loss
        model.zero_grad()
    return tape


def timed(tape: Tape, bandwidth: str = "1 GB/s") -> IterationSchedule:
    """The step on the clock; both directions of the link have one rate and no latency."""
    link = HostLinkConfig(d2h_bandwidth=bandwidth, h2d_bandwidth=bandwidth, latency="0 ns")
    network = network_from_tape(tape, "toy", 1, "fp32")
    return schedule(recorded_program(network, cast(Any, _Cost()), link, HOST_RATES))
