"""save-on-cpu and activation-checkpointing against PyTorch itself, byte for byte, on a small network.

PyTorch runs on the CPU here. Host memory is played by numpy arrays, which the counting doesn't see, so what is counted
is what a GPU would hold. Left out on both sides: weights and their gradients (the model holds the gradients from the
start, PyTorch makes them layer by layer) and dY of the last layer, which the test hands in.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from buddysim.training.driver import simulate_plan
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.networks.graph import Conv, Layer, Network, Pooling
from buddysim.training.outcome import IterationOutcome
from buddysim.training.schemes import activation_checkpointing, save_on_cpu
from tests.training.doubles import Cost, machine

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint_sequential  # noqa: E402

from tests.training.schemes.live_bytes import LiveBytes  # noqa: E402

BATCH = 3
SIDE = 16


def network() -> Network:
    """Return the module as a network, whose ReLU don't run in place, as PyTorch's by default."""
    layers = [Layer(0, "input", "input", (), (3, SIDE, SIDE))]

    def add(kind: str, shape: tuple[int, ...], needs: set[str], **more) -> None:
        index = len(layers)
        layers.append(
            Layer(index, f"{kind}{index}", kind, (index - 1,), shape, backward_reads=frozenset(needs), **more)
        )

    def conv(inputs: int, outputs: int, side: int) -> None:
        shape = Conv(inputs, outputs, side, side, side, side, 3, 3, 1, 1, 1, 1)
        add("conv", (outputs, side, side), {"x", "dy"}, conv=shape, parameters=shape.weights + outputs)
        add("relu", (outputs, side, side), {"y", "dy"})

    conv(3, 5, SIDE)
    conv(5, 7, SIDE)
    add("maxpool", (7, SIDE // 2, SIDE // 2), {"x", "y", "dy"}, pool=Pooling(2, 2, 2, 2, 0, 0))
    conv(7, 11, SIDE // 2)
    conv(11, 13, SIDE // 2)
    add("maxpool", (13, SIDE // 4, SIDE // 4), {"x", "y", "dy"}, pool=Pooling(2, 2, 2, 2, 0, 0))
    return Network("small", layers)


def module() -> nn.Sequential:
    def conv(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]

    return nn.Sequential(*conv(3, 5), *conv(5, 7), nn.MaxPool2d(2), *conv(7, 11), *conv(11, 13), nn.MaxPool2d(2))


def simulated(scheme: ModuleType) -> IterationOutcome:
    net, cost = network(), Cost()
    plan = scheme.plan(net, BATCH, machine(), cost, next(iter(scheme.SUMMARY)), TrainingOptions())
    return simulate_plan(net, BATCH, machine(), cost, plan, TrainingOptions())


def held(out: IterationOutcome) -> list[tuple[int, str, int, int]]:
    """Return layer and pass of each step, and bytes of feature maps, saved state and moved weights."""
    program, last = out.program, len(out.network.layers) - 1
    size = {
        t.number: t.byte_count
        for t in program.tensors
        if t.number not in program.resident and not (t.kind == "gradient_maps" and t.layer == last)
    }
    alive: set[int] = set()
    levels = []
    for step in program.steps:
        alive.update(step.allocate)
        during = sum(size.get(tensor, 0) for tensor in alive)
        alive.difference_update(step.release)
        levels.append((step.layer, step.pass_, during, sum(size.get(tensor, 0) for tensor in alive)))
    return levels


class Run:
    """One measured iteration in PyTorch.

    Attributes
    ----------
    forward : peak up to the end of each layer's first forward run, in bytes
    kept : bytes alive after the forward run, without the network's output
    backward_peak : the most alive in the backward run, without the output, which the caller holds
    """

    def __init__(self, forward_run: Callable[[nn.Sequential, torch.Tensor], torch.Tensor]) -> None:
        torch.manual_seed(0)
        net = module()
        weights = {p.numel() * p.element_size() for p in net.parameters()}
        self.forward: list[int] = []
        with LiveBytes(weights) as live:
            for position, layer in enumerate(net):
                layer.register_forward_hook(lambda *_, n=position: self._after(n, live))
            y = forward_run(net, torch.randn(BATCH, 3, SIDE, SIDE))
            output = y.untyped_storage().nbytes()
            self.held_bytes = live.bytes - output
            dy = torch.ones_like(y)
            live.leave_out(dy)
            live.leave_out(y)
            live.peak = live.bytes
            y.backward(dy)
            self.backward_peak = live.peak

    def _after(self, position: int, live: LiveBytes) -> None:
        if position == len(self.forward):  # not when a layer runs again
            self.forward.append(live.peak)


def agree(run: Run, out: IterationOutcome) -> None:
    steps = held(out)
    forward = [during for layer, pass_, during, _ in steps if pass_ == "forward" and layer]
    assert run.forward == [max(forward[: position + 1]) for position in range(len(forward))]
    assert run.held_bytes == next(after for _, pass_, _, after in reversed(steps) if pass_ == "forward")
    assert run.backward_peak == max(during for _, pass_, during, _ in steps if pass_ != "forward")


def test_save_on_cpu_copies_and_allocates_the_bytes_of_pytorch():
    packed = []

    def pack(tensor: torch.Tensor) -> np.ndarray:
        packed.append(tensor.numel() * tensor.element_size())
        return tensor.detach().numpy().copy()

    def unpack(saved: np.ndarray) -> torch.Tensor:
        copy = torch.empty(saved.shape, dtype=torch.int64 if saved.dtype == np.int64 else torch.float32)
        copy.numpy()[...] = saved
        return copy

    def forward(net: nn.Sequential, x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            for layer in net:
                x = layer(x)
        return x

    run, out = Run(forward), simulated(save_on_cpu)
    assert packed == [task.byte_count for task in out.program.tasks if task.stream == "offload"]
    assert out.offload_bytes == out.prefetch_bytes == sum(packed)
    agree(run, out)


def test_activation_checkpointing_allocates_the_bytes_of_pytorch():
    parts = activation_checkpointing.segments(network())
    assert parts == ((1, 3), (4, 6))  # and the last one, 7 to 10, which saves everything

    def forward(net: nn.Sequential, x: torch.Tensor) -> torch.Tensor:
        return checkpoint_sequential(net, len(parts) + 1, x, use_reentrant=False)

    agree(Run(forward), simulated(activation_checkpointing))
