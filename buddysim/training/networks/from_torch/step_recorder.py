"""Records what PyTorch runs on a tape: operations, storages and saved tensors, as symbolic tensors record them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from buddysim.training.autograd.cuda_scratch import cuda_scratch
from buddysim.training.autograd.dtypes import DTYPES, DType
from buddysim.training.autograd.records import Kind, Phase, SavedTensor
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor, TensorStorage
from buddysim.training.networks.from_torch.below_autograd import Proceed
from buddysim.training.networks.from_torch.operation_work import flops_of, products_of
from buddysim.training.networks.from_torch.untouched_memory import UntouchedMemory
from buddysim.training.networks.from_torch.without_data import changed_by, is_on_host, is_view, tensors_in

aten = torch.ops.aten

#: Operators that allocate, and run no kernel.
_ALLOCATIONS = (aten.empty, aten.empty_like, aten.empty_strided, aten.empty_permuted, aten.new_empty)


class Packed:
    """What autograd holds in place of a tensor that it saves; `record` is None for a number of the host."""

    __slots__ = ("number", "record", "tensor")

    def __init__(self, number: int, record: SavedTensor | None, tensor: torch.Tensor) -> None:
        self.number, self.record, self.tensor = number, record, tensor


class StepRecorder:
    """A handler for `below_autograd` that records on a tape what runs.

    It is entered last, so that it sees what other handlers return.

    Parameters
    ----------
    memory : where all tensors are allocated
    """

    def __init__(self, tape: Tape, memory: UntouchedMemory) -> None:
        self.tape, self.memory = tape, memory
        memory.on_allocation = self._allocated
        self._producers: dict[tuple[Any, ...], str] = {}
        self._producer, self._label = "", ""
        self._kind: Kind = "temporary"
        self._phase: Phase = "forward"
        self._scopes_of_nodes: dict[int, str] = {}
        self._operations_of_nodes: dict[int, int] = {}
        self._scopes = [""]
        self._paths: dict[int, str] = {}
        self._parameters: dict[int, tuple[torch.nn.Parameter, str]] = {}
        self._others: dict[int, tuple[TensorStorage, torch.Tensor]] = {}
        self._packed = 0

    @contextmanager
    def setup(self, kind: Kind, name: str) -> Iterator[None]:
        """What is allocated within is there before the first step."""
        before = self.tape.phase, self.tape.scope
        self.tape.phase, self.tape.scope = "setup", name.rpartition(".")[0]
        self._kind, self._producer, self._label = kind, kind, name
        try:
            yield
        finally:
            self.tape.phase, self.tape.scope = before
            self._kind, self._producer, self._label = "temporary", "", ""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is allocated within isn't recorded."""
        self.memory.on_allocation = lambda _: None
        try:
            yield
        finally:
            self.memory.on_allocation = self._allocated

    def hold(self, tensor: torch.Tensor, kind: Kind, name: str) -> None:
        """Records a tensor that was made while the recorder was paused, as there before the first step."""
        block = self.memory.find(tensor)
        if block is not None:
            with self.setup(kind, name):
                block.label = self._allocated(tensor.numel() * tensor.element_size())

    @contextmanager
    def watching(self, module: torch.nn.Module) -> Iterator[None]:
        """Context in which calls of submodules are scopes, and parameters have names."""
        self._paths = {id(child): name for name, child in module.named_modules()}
        self._parameters = {id(parameter): (parameter, name) for name, parameter in module.named_parameters()}
        hooks = torch.nn.modules.module
        entered = hooks.register_module_forward_pre_hook(self._enter_module)
        left = hooks.register_module_forward_hook(self._leave_module, always_call=True)
        try:
            yield
        finally:
            entered.remove()
            left.remove()

    def __call__(self, func: Any, args: Any, kwargs: Any, proceed: Proceed) -> Any:
        """Return the results of an operator."""
        inputs = list(tensors_in((args, kwargs)))
        if inputs and all(map(self._is_host, inputs)):
            return proceed(func, args, kwargs)  # the counters of an optimizer, say
        if func is aten.lift_fresh.default:
            inputs = []  # a list of Python's, as a tensor
        name, tape = func.overloadpacket.__name__, self.tape
        tape.phase, tape.scope, tape.node = self._origin()
        reads = list(self._operands(inputs))
        fresh = len(tape.storages)
        self._producer = name
        result = proceed(func, args, kwargs)
        results, changed = list(tensors_in(result)), list(changed_by(func, args, kwargs))
        # Autograd takes a detached one of each output that it saves; products expand what has the shape.
        for one in results if name != "detach" else ():
            self._producers[_key(one)] = self._producers.get(_key(one), name) if name == "expand" else name
        if func.overloadpacket in _ALLOCATIONS:
            return result
        if is_view(func) or (not changed and len(tape.storages) == fresh):
            tape.views += 1
            return result
        products = products_of(func, args)
        rest = flops_of(func, args, kwargs, result) - sum(one.flops for one in products)
        if tape.phase == "forward":
            self._operations_of_nodes.setdefault(torch.autograd._get_sequence_nr() - 1, len(tape.operations))
        scratch = cuda_scratch(tape, name, reads[0]) if reads else None
        tape.launch(name, reads, list(self._operands(results + changed)), products, max(rest, 0))
        del scratch
        return result

    def pack(self, tensor: torch.Tensor) -> Packed:
        """Notes a tensor that autograd saves: a hook of ``saved_tensors_hooks``."""
        self._packed += 1
        if self._is_host(tensor) or not tensor.numel():
            return Packed(self._packed, None, tensor)
        storage = self._storage(tensor)
        shape, strides, dtype = tuple(tensor.shape), tuple(tensor.stride()), dtype_of(tensor)
        producer = self.producer_of(tensor)
        number, operation = storage.record.number, len(self.tape.operations) - 1
        record = SavedTensor("", "", shape, strides, dtype, number, producer, self._scopes[-1], operation)
        return Packed(self._packed, record, tensor)

    def producer_of(self, tensor: torch.Tensor) -> str:
        """The operator that returned a tensor, by PyTorch's name."""
        return self._producers.get(_key(tensor), self._storage(tensor).record.producer)

    @staticmethod
    def unpack(packed: Packed) -> torch.Tensor:
        """The tensor: the other hook."""
        return packed.tensor

    def note_saved(self, loss: torch.Tensor) -> None:
        """Notes what the nodes of a loss's graph save, in the order in which they saved it."""
        waiting, nodes, noted = [loss.grad_fn], set(), []
        while waiting:
            node = waiting.pop()
            if node is None or node in nodes:
                continue
            nodes.add(node)
            waiting += [following for following, _ in node.next_functions]
            for attribute in dir(node):
                if attribute.startswith("_raw_saved_"):
                    saved = getattr(node, attribute)
                    data = [one.data for one in (saved if isinstance(saved, tuple) else (saved,))]
                    noted += [(one.number, node, attribute, one.record) for one in data if type(one) is Packed]
        for _, node, attribute, record in sorted(noted, key=lambda one: one[0]):
            if record is not None:
                record.node, record.name = node.name(), attribute.removeprefix("_raw_saved_")
                # Inputs are saved before their operator runs, results behind it.
                record.operation = self._operations_of_nodes.get(node._sequence_nr(), record.operation)
                self.tape.saved.append(record)
                storage = self.tape.storages[record.storage]
                storage.kind = "activation" if storage.kind == "temporary" else storage.kind

    def note_gradients(self) -> None:
        """Notes which storages are gradients of parameters."""
        for parameter, name in self._parameters.values():
            if parameter.grad is not None:
                record = self._storage(parameter.grad).record
                record.kind, record.label = "gradient", name

    def note_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Notes which storages are an optimizer's state."""
        for parameter, state in optimizer.state.items():
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and not self._is_host(value):
                    record = self._storage(value).record
                    record.kind, record.label = "optimizer", f"{self._parameters[id(parameter)][1]}.{key}"

    @contextmanager
    def optimizing(self) -> Iterator[None]:
        """What runs within is of the optimizer."""
        self._phase = "optimizer"
        try:
            yield
        finally:
            self._phase = "forward"

    def _is_host(self, tensor: torch.Tensor) -> bool:
        return is_on_host(self.memory)(tensor)

    def _allocated(self, size: int) -> TensorStorage:
        """Notes a new block; its record ends with it."""
        return self.tape.allocate(size, self._producer, self._kind, self._label)

    def _storage(self, tensor: torch.Tensor) -> TensorStorage:
        """The storage of a tensor; one that a module holds, but isn't its buffer, is an input."""
        block = self.memory.find(tensor)
        if block is not None:
            storage: TensorStorage = block.label
            return storage
        address = tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
        if address not in self._others:
            with self.setup("input", ""):
                self._others[address] = (
                    self.tape.allocate(tensor.numel() * tensor.element_size(), "input", "input"),
                    tensor,
                )
        return self._others[address][0]

    def _operands(self, tensors: Iterable[torch.Tensor]) -> Iterator[Tensor]:
        for one in tensors:
            if one.numel() and not self._is_host(one):
                storage, shape, strides = self._storage(one), tuple(one.shape), tuple(one.stride())
                yield Tensor(shape, strides, one.storage_offset(), dtype_of(one), storage, self._producer)

    def _origin(self) -> tuple[Phase, str, str]:
        """Phase, module and node of the operation that runs."""
        if self._phase == "optimizer":
            return "optimizer", "", ""
        if torch._C._current_graph_task_id() == -1:
            # A node is made before its operator runs, so the last sequence number is that of its node.
            self._scopes_of_nodes.setdefault(torch.autograd._get_sequence_nr() - 1, self._scopes[-1])
            return "forward", self._scopes[-1], ""
        node = torch._C._current_autograd_node()
        if node is None:
            return "backward", "", ""
        if hasattr(node, "variable"):
            _, name = self._parameters.get(id(node.variable), (None, ""))
            return "backward", name.rpartition(".")[0], node.name()
        return "backward", self._scopes_of_nodes.get(node._sequence_nr(), ""), node.name()

    def _enter_module(self, module: torch.nn.Module, args: Any) -> None:
        self._scopes.append(self._paths.get(id(module), self._scopes[-1]))

    def _leave_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        self._scopes.pop()


def _key(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What tells a tensor from others that live: a new one overwrites what an ended one left."""
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())


def dtype_of(tensor: torch.Tensor) -> DType:
    """Return the type of a tensor's elements."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name in DTYPES:
        return DTYPES[name]
    return DType(name, tensor.element_size(), 2 if tensor.is_floating_point() else 1)
