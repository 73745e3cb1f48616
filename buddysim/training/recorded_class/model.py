"""A class of PyTorch's as a model: built once without memory, its forward pass recorded once for each batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.training.autograd.layout import contiguous_strides
from buddysim.training.networks.from_torch.cuda_rules import Attention
from buddysim.training.networks.from_torch.untouched_memory import UntouchedMemory
from buddysim.training.recorded_class.isolated import Isolation
from buddysim.training.recorded_class.program import ForwardProgram
from buddysim.training.recorded_class.tracer import Tracer

#: From a module's result to the number that is trained.
Select = Callable[[Any], torch.Tensor]


class RecordedClass:
    """A module and the programs of its forward pass.

    Parameters
    ----------
    module : on the device ``meta``; its weights get memory that nobody writes
    samples : inputs of one sample, by name
    attention : which of PyTorch's fused kernels attention may take

    Attributes
    ----------
    trained : weights that need gradients, by identity
    """

    def __init__(
        self, module: torch.nn.Module, samples: Mapping[str, torch.Tensor], select: Select, attention: Attention
    ) -> None:
        self.module, self.samples, self.select = module.train(), samples, select
        self.memory = UntouchedMemory()
        self.isolation = Isolation(self.memory, attention)
        self.trained = _moved(module, self.memory)
        self.program = cache(self._program)

    def _program(self, batch: int, autocast: torch.dtype | None, casting_back: frozenset[str]) -> ForwardProgram:
        """Return what a forward pass of a batch does, within `Isolation.active`.

        Parameters
        ----------
        casting_back : paths of products that return the number format of what they get

        Raises
        ------
        BuddysimError
            a module that doesn't run on such inputs
        """
        inputs = {name: self._input(one, batch) for name, one in self.samples.items()}
        try:
            with torch.autocast("cpu", autocast, enabled=autocast is not None):
                cast = frozenset(id(one) for path, one in self.module.named_modules() if path in casting_back)
                return Tracer(self.module, self.memory, cast).record(inputs, self.select)
        except BuddysimError as error:
            raise BuddysimError(f"{type(self.module).__name__}: {error}") from None
        except Exception as error:
            reason = shortened(" ".join(str(error).split()), 200)[1:-1] or type(error).__name__
            name = type(self.module).__name__
            raise BuddysimError(f"{name}: the module doesn't run on these inputs: {reason}") from None

    def _input(self, sample: torch.Tensor, batch: int) -> torch.Tensor:
        shape = (batch, *sample.shape)
        if sample.is_floating_point():
            return self.memory.allocate(shape, contiguous_strides(shape), sample.dtype)
        return self.memory.copied(torch.zeros(shape, dtype=sample.dtype))


def _moved(module: torch.nn.Module, memory: UntouchedMemory) -> frozenset[int]:
    """Give weights and buffers memory; return those that are trained, which aren't while the module is recorded."""
    made: dict[int, torch.Tensor] = {}
    trained = set()
    for one in module.modules():
        for name, weight in one._parameters.items():
            if weight is not None:
                if id(weight) not in made:
                    moved = memory.allocate(tuple(weight.shape), weight.stride(), weight.dtype)
                    made[id(weight)] = torch.nn.Parameter(moved, False)
                    if weight.requires_grad:
                        trained.add(id(made[id(weight)]))
                one._parameters[name] = made[id(weight)]
        for name, buffer in one._buffers.items():
            if buffer is not None:
                if id(buffer) not in made:
                    is_known = buffer.device.type == "cpu"
                    made[id(buffer)] = (
                        memory.copied(buffer)
                        if is_known
                        else memory.allocate(tuple(buffer.shape), buffer.stride(), buffer.dtype)
                    )
                one._buffers[name] = made[id(buffer)]
    return frozenset(trained)
