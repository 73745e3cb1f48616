"""The operator graph of one training iteration, as a capture of a PyTorch script recorded it;
docs/reference/operator-graph.md.

It has the operators in the order in which they ran, the tensors that they read and wrote, the storages of these, and
each storage's lifetime in operators. `OperatorGraph` derives what a memory simulator needs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import read_bytes
from buddysim.base.schema import checked_json

LARGEST_FILE = 2**30

Phase = Literal["forward", "backward", "optimizer"]
Role = Literal["weight", "buffer", "gradient", "optimizer", "input", "feature_map", "gradient_map", "held", "temporary"]
Kind = Literal["compute", "view", "allocation"]

Count = Annotated[int, Field(ge=0, lt=2**62)]
Index = Annotated[int, Field(ge=0, lt=2**31)]
Text = Annotated[str, Field(max_length=4096)]
Argument = bool | int | float | str | tuple[bool | int | float, ...]
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Storage:
    """Memory that holds tensors.

    Attributes
    ----------
    bytes : size of the memory
    role : ``"weight"``, ``"buffer"`` (of a module), ``"gradient"``, ``"optimizer"`` (its state), ``"input"`` (from
        outside of the iteration), ``"feature_map"`` (written forward, live when the backward pass began),
        ``"gradient_map"`` (written backward, not a weight's gradient), ``"held"`` (of the script, from before the
        iteration, and no operator reads it), ``"temporary"`` (anything else)
    name : name, the same in every iteration
    alloc_operator : the operator that allocated it; None if it existed before the iteration
    free_operator : the last operator before it was freed; None if it outlived the iteration
    doubled : its bytes at twice the batch; None: the same
    """

    __pydantic_config__ = _STRICT

    bytes: Count
    role: Role
    name: Text
    alloc_operator: Index | None = None
    free_operator: Index | None = None
    doubled: Count | None = None


@dataclass(frozen=True)
class OperandTensor:
    """A tensor as an operator saw it: a view of a storage.

    Attributes
    ----------
    storage : index of the storage
    offset : bytes from the storage's start to the first element
    shape, strides : in elements
    dtype : as PyTorch names it, ``"float32"``
    extent : bytes from the first element to the end of the last one
    doubled : its shape at twice the batch; None: the same
    """

    __pydantic_config__ = _STRICT

    storage: Index
    offset: Count
    shape: tuple[Count, ...]
    strides: tuple[Count, ...]
    dtype: Text
    extent: Count
    doubled: tuple[Count, ...] | None = None


@dataclass(frozen=True)
class SavedOperand:
    """A tensor that autograd saved for the backward pass.

    Attributes
    ----------
    tensor : index of the tensor
    operator : the last operator before it was saved; 0 before the first
    node : formula that read it, ``"MulBackward0"``; empty if none did
    module : in whose forward step it was saved
    """

    __pydantic_config__ = _STRICT

    tensor: Index
    operator: Index
    node: Text = ""
    module: Text = ""


@dataclass(frozen=True)
class Operator:
    """One operator of PyTorch's ATen library that ran.

    Attributes
    ----------
    name : ``"aten.convolution.default"``
    phase : pass that it belonged to
    kind : ``"compute"``; ``"view"`` (its outputs are other views of its inputs' memory), ``"allocation"`` (memory
        without values); views and allocations access no values
    module : the module in whose forward step it ran, by its qualified name; of a backward operator the same, where its
        forward operator is known
    forward : backward only: the forward operator that it differentiates, where known
    inputs, outputs : tensors read, and written; one that is changed in place is in both
    flops : multiplications and additions, 0 where PyTorch's counter has no formula
    arguments : arguments other than tensors, by the names of ATen's schema; a missing one had its default
    doubled : its `flops` at twice the batch; None: the same
    """

    __pydantic_config__ = _STRICT

    name: Text
    phase: Phase
    kind: Kind = "compute"
    module: Text = ""
    forward: Index | None = None
    inputs: tuple[Index, ...] = ()
    outputs: tuple[Index, ...] = ()
    flops: Count = 0
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    doubled: Count | None = None

    @property
    def short_name(self) -> str:
        """Return the name without library and overload: ``"convolution"``."""
        return self.name.split(".")[1] if "." in self.name else self.name


@dataclass(frozen=True)
class OperatorGraph:
    """Operator graph of one iteration.

    Attributes
    ----------
    iteration : optimizer steps before it
    provenance : texts by subject
    saved_operands : what autograd saved, in the order in which it did
    batch : samples of its batch; 0: unknown
    """

    __pydantic_config__ = _STRICT

    storages: tuple[Storage, ...]
    tensors: tuple[OperandTensor, ...]
    operators: tuple[Operator, ...]
    iteration: Count = 0
    provenance: Mapping[str, str] = field(default_factory=dict)
    saved_operands: tuple[SavedOperand, ...] = ()
    batch: Count = 0
    format: Literal["buddysim operator graph"] = "buddysim operator graph"
    version: Literal[2] = 2

    def readers(self, storage: int) -> tuple[int, ...]:
        """Return the operators that read a storage, in order; views do not read."""
        return self._users[0].get(storage, ())

    def writers(self, storage: int) -> tuple[int, ...]:
        """Return the operators that write a storage, in order."""
        return self._users[1].get(storage, ())

    @cached_property
    def _users(self) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
        reads: dict[int, list[int]] = {}
        writes: dict[int, list[int]] = {}
        for number, operator in enumerate(self.operators):
            if operator.kind != "compute":
                continue
            for users, tensors in ((reads, operator.inputs), (writes, operator.outputs)):
                for storage in dict.fromkeys(self.tensors[tensor].storage for tensor in tensors):
                    users.setdefault(storage, []).append(number)
        return tuple({s: tuple(numbers) for s, numbers in users.items()} for users in (reads, writes))  # type: ignore[return-value]

    @property
    def saved(self) -> tuple[int, ...]:
        """Return the storages that autograd saved, but weights and buffers; a scheme may offload or compress them."""
        saved = {self.tensors[one.tensor].storage for one in self.saved_operands}
        return tuple(one for one in sorted(saved) if self.storages[one].role not in ("weight", "buffer"))

    def live_bytes(self, roles: Iterable[str] | None = None) -> list[int]:
        """Return the live bytes during each operator, of storages of some roles (None: of all)."""
        selected_roles = None if roles is None else set(roles)
        change = [0] * (len(self.operators) + 1)
        for storage in self.storages:
            if selected_roles is None or storage.role in selected_roles:
                change[storage.alloc_operator or 0] += storage.bytes
                if storage.free_operator is not None:
                    change[storage.free_operator + 1] -= storage.bytes
        return list(accumulate(change[:-1]))

    @property
    def peak_bytes(self) -> int:
        """Return the largest number of live bytes."""
        return max(self.live_bytes(), default=0)

    def bytes_by_role(self) -> dict[str, int]:
        """Return the bytes of all storages of each role."""
        bytes_of_role: dict[str, int] = {}
        for storage in self.storages:
            bytes_of_role[storage.role] = bytes_of_role.get(storage.role, 0) + storage.bytes
        return bytes_of_role

    def idle(self, storage: int) -> tuple[int, int] | None:
        """Return first and last operator of the longest run without access to a live storage; None: no such run."""
        touched = sorted({*self.readers(storage), *self.writers(storage)})
        gaps = [(b - a, a + 1, b - 1) for a, b in pairwise(touched) if b - a > 1]
        return max(gaps, key=lambda gap: gap[0])[1:] if gaps else None

    def to_json(self) -> bytes:
        """Return the graph as JSON, in the format of `load_operators`."""
        return _TYPE.dump_json(self)


_TYPE = TypeAdapter(OperatorGraph)


@within_budget
def load_operators(path: str | os.PathLike[str]) -> OperatorGraph:
    """Load a graph that a capture wrote.

    Raises
    ------
    BuddysimError
        if the file cannot be read or breaks a rule of docs/reference/operator-graph.md; the message has rule and
        position
    """
    text = read_bytes(path, "operator graph", LARGEST_FILE)
    graph = checked_json(_TYPE, text, f"{path}: operator graph")
    _check(graph, path)
    return graph


def _check(graph: OperatorGraph, path: str | os.PathLike[str]) -> None:
    def fail(what: str, number: int, problem: str) -> None:
        raise BuddysimError(f"{path}: operator graph: {what} {number}: {problem}")

    n_storages, n_tensors, n_operators = len(graph.storages), len(graph.tensors), len(graph.operators)
    for number, storage in enumerate(graph.storages):
        first, last = storage.alloc_operator, storage.free_operator
        if max(first or 0, last or 0) >= max(n_operators, 1):
            fail("storage", number, f"lives from {first} to {last}: there are {n_operators} operators")
        if last is not None and last < (first or 0):
            fail("storage", number, f"freed at operator {last}, before its allocation at operator {first}")
    for number, tensor in enumerate(graph.tensors):
        if tensor.storage >= n_storages:
            fail("tensor", number, f"lies in storage {tensor.storage}: there are {n_storages}")
        if tensor.offset + tensor.extent > graph.storages[tensor.storage].bytes:
            fail("tensor", number, f"reaches beyond the {graph.storages[tensor.storage].bytes} bytes of its storage")
        if len(tensor.shape) != len(tensor.strides):
            fail("tensor", number, f"has {len(tensor.shape)} axes and {len(tensor.strides)} strides")
        if 0 not in tensor.shape:
            last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
            if last >= tensor.extent:
                fail(
                    "tensor", number, f"has an extent of {tensor.extent} bytes, and an element {last} behind the first"
                )
    for number, saved in enumerate(graph.saved_operands):
        if saved.tensor >= n_tensors or saved.operator >= max(n_operators, 1):
            fail("saved operand", number, f"names tensor {saved.tensor} of {n_tensors}, operator {saved.operator}")
    for number, tensor in enumerate(graph.tensors):
        if tensor.doubled is not None and len(tensor.doubled) != len(tensor.shape):
            fail("tensor", number, f"has {len(tensor.shape)} axes, and {len(tensor.doubled)} at twice the batch")
    for number, operator in enumerate(graph.operators):
        for index in (*operator.inputs, *operator.outputs):
            if index >= n_tensors:
                fail("operator", number, f"names tensor {index}: there are {n_tensors}")
            storage = graph.storages[graph.tensors[index].storage]
            if (storage.alloc_operator or 0) > number or (
                storage.free_operator is not None and storage.free_operator < number
            ):
                fail("operator", number, f"uses tensor {index} while its storage {storage.name!r} is not allocated")
        if operator.forward is not None and operator.forward >= number:
            fail("operator", number, f"differentiates operator {operator.forward}, which comes after it")
