"""What a benchmark script of Liger does with one layer: its tensors, its forward pass, the gradient that it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from buddysim.machine.training import TrainingMachine
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import DType, bfloat16, float32
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.caching_allocator import replay_tape

#: Calls that are recorded; from the second on each one needs the same.
CALLS = 3
MIB = 1 << 20
#: Machines of the GPUs that were measured, by a part of their names.
MACHINES = {"A100": "a100-80", "H100": "h100-sxm"}
_DTYPES = {"torch.bfloat16": bfloat16, "torch.float32": float32}

Outputs = Sequence[Tensor]
Gradients = Sequence[Tensor | None]


@dataclass
class LayerScript:
    """A script's layer with its tensors on the GPU.

    Attributes
    ----------
    forward : runs the layer; its outputs are the tensors that backward begins at, and those that the script holds
    gradients : of the outputs, made when they are needed (None: a scalar's); the same ones each time, or new ones
    retains : the script keeps the graph (``retain_graph=True``), so that what is saved stays until the call ends
    dropped : leaves whose gradients each call drops first
    held : other tensors that the script holds
    workspaces : threads that ran products while the script set up its tensors
    """

    forward: Callable[[], Outputs]
    gradients: Callable[[Outputs], Gradients]
    retains: bool = False
    dropped: Sequence[Tensor] = ()
    held: Sequence[object] = field(default_factory=tuple)
    workspaces: int = 0


Setup = Callable[[Mapping[str, Any]], LayerScript]


def dtype_of(config: Mapping[str, Any]) -> DType:
    """The dtype that a script's configuration names."""
    return _DTYPES[config["dtype"]]


def ones(outputs: Outputs) -> Gradients:
    """New gradients of the outputs' shape, as ``randn_like`` and ``ones_like`` make."""
    return [F.ones_like(one) for one in outputs]


def scalar(outputs: Outputs) -> Gradients:
    """No gradient: the first output is a loss."""
    return [None]


def leaf(shape: tuple[int, ...], dtype: DType) -> Parameter:
    """An input that needs a gradient."""
    return Parameter(shape, dtype)


@cache
def workspace_bytes(gpu: str) -> int:
    """Return the workspace of cuBLAS per thread on a GPU, a key of its machine; 0 of others."""
    machine = next((machine for name, machine in MACHINES.items() if name in gpu), None)
    return TrainingMachine.load(machine).workspace_bytes if machine else 0


def peak_bytes(setup: Setup, config: Mapping[str, Any], mode: str, gpu: str) -> int:
    """Return the peak of allocated bytes of a call of the script, as PyTorch's allocator counts them.

    Parameters
    ----------
    config : sizes, the one that varies included
    mode : ``forward``, ``backward`` or ``full``
    gpu : its name, which decides the workspace of cuBLAS
    """
    with Tape() as tape:
        script = setup(config)
        tape.settle()
        outputs: Outputs | None = None
        if mode == "backward":
            outputs = _forward(tape, script)
        for _ in range(CALLS):
            for one in script.dropped:
                one.grad = None
            _call(tape, script, mode, outputs)
    workspace = workspace_bytes(gpu)
    threads = {one.phase == "backward" for one in tape.operations if one.products}
    missing = 2 - len(threads) if threads else script.workspaces  # both exist, since speed was measured before
    return replay_tape(tape, workspace=workspace).peak_allocated_bytes + missing * workspace


def _forward(tape: Tape, script: LayerScript) -> Outputs:
    with tape.in_phase("forward"):
        return script.forward()


def _call(tape: Tape, script: LayerScript, mode: str, outputs: Outputs | None) -> None:
    results = _forward(tape, script) if outputs is None else outputs
    if mode == "forward":
        return
    gradients = script.gradients(results)
    for result, gradient in reversed(list(zip(results, gradients, strict=False))):
        result.backward(gradient, retain_graph=script.retains or outputs is not None)
