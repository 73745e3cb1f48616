"""A weight that is divided among GPUs along its first dimension (``_fsdp_param.py``)."""

from __future__ import annotations

from collections import defaultdict
from math import prod

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor


class ShardedParameter:
    """The first GPU's part of a weight, and the weight while it is gathered.

    The first dimension is divided into equal parts, the last ones padded; DeepSpeed's weights are so as sequences.
    Modules have the part or the weight as their attribute, whichever there is.

    Parameters
    ----------
    owners : modules that have the weight, and its name there
    own_dtype : of the part
    dtype : in which it is gathered
    is_flat : divided as a sequence

    Attributes
    ----------
    shard : this GPU's part
    padded : the same, of the size of every GPU's
    full : the weight; its memory is given back while it isn't gathered
    part_elements, padded_elements : of a part, and of all parts together
    """

    def __init__(
        self,
        tape: Tape,
        parameter: Parameter,
        owners: list[tuple[Module, str]],
        gpus: int,
        own_dtype: DType,
        dtype: DType,
        *,
        is_flat: bool = False,
    ) -> None:
        shape, label = parameter.shape, parameter.storage.record.label
        if is_flat:
            shape = (parameter.numel(),)
        rows = -(-shape[0] // gpus)
        self.owners, self.dtype, self.casts = owners, dtype, dtype is not own_dtype
        self.part_elements = rows * prod(shape[1:])
        self.padded_elements = self.part_elements * gpus
        self.shard = Parameter((min(rows, shape[0]), *shape[1:]), own_dtype, parameter.requires_grad)
        self.shard.storage.record.label = label
        self.padded: Tensor = self.shard
        self.full = self._full(tape, parameter.shape, parameter.requires_grad, label)
        self.show(self.shard)

    def _full(self, tape: Tape, shape: Shape, requires_grad: bool, label: str) -> Parameter:
        full = Parameter(shape, self.dtype, requires_grad)
        full.storage = tape.allocate(self.padded_elements * self.dtype.size, "empty", "gathered", label)
        full.storage.release()
        return full

    def show(self, tensor: Parameter) -> None:
        """Make a tensor the attribute of the modules."""
        for module, name in self.owners:
            setattr(module, name, tensor)


def owners_of(model: Module) -> dict[int, list[tuple[Module, str]]]:
    """Modules that have each parameter, and its name there, by the parameter's identity."""
    owners: dict[int, list[tuple[Module, str]]] = defaultdict(list)
    for _, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Parameter):
                owners[id(value)].append((module, name))
    return owners
