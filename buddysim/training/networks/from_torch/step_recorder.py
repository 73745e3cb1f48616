"""Records what PyTorch runs on a tape: operations, storages and saved tensors, as symbolic tensors record them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from buddysim.training.autograd.dtypes import DTYPES, DType
from buddysim.training.autograd.records import Kind, Phase, SavedTensor
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Storage, Tensor
from buddysim.training.networks.from_torch.below_autograd import Proceed
from buddysim.training.networks.from_torch.operation_work import flops_of, products_of
from buddysim.training.networks.from_torch.without_data import changed_by, tensors_in

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
    module : whose submodules are the scopes, and whose parameters and buffers are there before the first step
    inputs : tensors that the script holds, by name
    """

    def __init__(self, tape: Tape, module: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> None:
        self.tape = tape
        self._storages: dict[int, Storage] = {}
        self._references: list[Any] = []
        self._host: dict[int, Any] = {}
        self._producers: dict[tuple[Any, ...], str] = {}
        self._producer = ""
        self._phase: Phase = "forward"
        self._scopes_of_nodes: dict[int, str] = {}
        self._scopes = [""]
        self._paths = {id(child): name for name, child in module.named_modules()}
        self._parameters = {id(parameter): (parameter, name) for name, parameter in module.named_parameters()}
        self._packed = 0
        for name, parameter in module.named_parameters():
            self._hold(parameter, "parameter", name)
        for name, buffer in module.named_buffers():
            self._hold(buffer, "buffer", name)
        for name, tensor in inputs.items():
            self._hold(tensor, "input", name)

    @contextmanager
    def watching_modules(self) -> Iterator[None]:
        """Context in which calls of submodules are scopes."""
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
        if self._runs_on_host(func, inputs):
            result = proceed(func, args, kwargs)
            for one in tensors_in(result):
                self._note_host(one)
            return result
        if func is aten.lift_fresh.default:  # its input is the tensor that it returns
            inputs = []
        name, tape = func.overloadpacket.__name__, self.tape
        tape.phase, tape.scope, tape.node = self._origin()
        reads = [self._operand(one) for one in inputs if not self._is_host(one)]
        fresh = len(tape.storages)
        self._producer = name
        result = proceed(func, args, kwargs)
        results = list(tensors_in(result))
        changed = [one for one in changed_by(func, args, kwargs) if not self._is_host(one)]
        writes = [self._operand(one) for one in results + changed]
        if name != "detach":  # autograd takes one of each output that it saves
            self._producers |= {self._key(one): name for one in results}
        if func.overloadpacket not in _ALLOCATIONS and (changed or len(tape.storages) > fresh):
            products = products_of(func, args)
            rest = flops_of(func, args, kwargs, result) - sum(one.flops for one in products)
            tape.launch(name, reads, writes, products, max(rest, 0))
        elif func.overloadpacket not in _ALLOCATIONS:
            tape.views += 1
        return result

    def pack(self, tensor: torch.Tensor) -> Packed:
        """Notes a tensor that autograd saves: a hook of ``saved_tensors_hooks``."""
        self._packed += 1
        if not tensor.dim() and tensor.untyped_storage()._cdata not in self._storages:
            return Packed(self._packed, None, tensor)  # a factor of Python's
        storage = self._storage(tensor)
        shape, strides, dtype = tuple(tensor.shape), tuple(tensor.stride()), _dtype(tensor)
        producer = self._producers.get(self._key(tensor), storage.record.producer)
        number, operation = storage.record.number, len(self.tape.operations) - 1
        record = SavedTensor("", "", shape, strides, dtype, number, producer, self._scopes[-1], operation)
        return Packed(self._packed, record, tensor)

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
                    noted += [(one.number, node.name(), attribute, one.record) for one in data if type(one) is Packed]
        for _, node_name, attribute, record in sorted(noted, key=lambda one: one[0]):
            if record is not None:
                record.node, record.name = node_name, attribute.removeprefix("_raw_saved_")
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

    def _runs_on_host(self, func: Any, inputs: list[torch.Tensor]) -> bool:
        """Whether a GPU's host would run it: numbers that a script makes tensors of, and what follows from them alone.

        Among them are the step counters of optimizers.
        """
        if func is aten.lift_fresh.default:
            return not inputs[0].dim()
        return bool(inputs) and all(map(self._is_host, inputs))

    def _is_host(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._host

    def _note_host(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        self._host.setdefault(key, weakref.ref(storage, lambda _: self._host.pop(key)))

    def _hold(self, tensor: torch.Tensor, kind: Kind, name: str) -> None:
        """Notes a tensor that is there before the first step."""
        if tensor.untyped_storage()._cdata not in self._storages:
            self.tape.phase, self.tape.scope = "setup", name.rpartition(".")[0]
            self._storage(tensor, kind, kind, name)

    def _storage(self, tensor: torch.Tensor, kind: Kind = "temporary", producer: str = "", label: str = "") -> Storage:
        """The storage of a tensor; a new one is allocated by the operator that runs."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._storages:
            self._storages[key] = self.tape.allocate(storage.nbytes(), producer or self._producer, kind, label)
            self._references.append(weakref.ref(storage, lambda _: self._storages.pop(key)))
        return self._storages[key]

    def _operand(self, tensor: torch.Tensor) -> Tensor:
        storage, shape, strides = self._storage(tensor), tuple(tensor.shape), tuple(tensor.stride())
        return Tensor(shape, strides, tensor.storage_offset(), _dtype(tensor), storage, self._producer)

    def _key(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        number, offset = self._storage(tensor).record.number, tensor.storage_offset()
        return number, offset, tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())

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


def _dtype(tensor: torch.Tensor) -> DType:
    name = str(tensor.dtype).removeprefix("torch.")
    if name in DTYPES:
        return DTYPES[name]
    return DType(name, tensor.element_size(), 2 if tensor.is_floating_point() else 1)
