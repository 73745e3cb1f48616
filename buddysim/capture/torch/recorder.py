"""Records the operators of one iteration by a mode of PyTorch's dispatcher below autograd, which sees both passes.

The recorder doesn't change the script's results, bit for bit. It reads tensors through their addresses, calls no
operator of PyTorch, generates no random number and keeps no reference to a tensor.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from buddysim.base.errors import BuddysimError
from buddysim.capture.torch.call_tensors import tensors_in
from buddysim.capture.torch.doubled_batch import DoubledBatch
from buddysim.formats.operator_graph import OperandTensor, Operator, OperatorGraph, SavedOperand, Storage

_ALLOCATIONS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")
#: Operators that overwrite a tensor without reading it.
_OVERWRITES = ("zero_", "fill_", "copy_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_", "set_")

#: What the name of a storage says of where it was allocated, behind the module.
_SUFFIXES = {"forward": "", "no_grad": " without gradient", "backward": " backward", "optimizer": " optimizer"}

_NEEDED = (
    (torch._C, "_current_graph_task_id"),
    (torch._C, "_current_autograd_node"),
    (torch.autograd, "_get_sequence_nr"),
    (torch.UntypedStorage, "_new_with_weak_ptr"),
)

OnMap = Callable[["Recorder", int, torch.Tensor], None]


def check_version() -> None:
    """Refuse a PyTorch without the internals that the recorder uses."""
    for owner, name in _NEEDED:
        if not hasattr(owner, name):
            raise BuddysimError(f"capture torch: PyTorch {torch.__version__} has no {name}: expected 2.13")


def bytes_of(storage: torch.UntypedStorage) -> npt.NDArray[np.uint8]:
    """Return a storage's bytes without a copy."""
    size = storage.nbytes()
    if not size:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(storage.data_ptr()))


def readable(storage: torch.UntypedStorage) -> bool:
    """Whether its bytes lie in this process's memory."""
    return bool(storage.device.type == "cpu" and (storage.nbytes() == 0 or storage.data_ptr() != 0))


class Recorder(TorchDispatchMode):
    """Context that records operators, tensors and storages.

    Parameters
    ----------
    named : role and name of existing storages, by address of the storage object
    module : function that returns the qualified name of the running module
    on_output : called after each operator of either pass that computes, with its number and each output
    on_backward : called before the first operator of the backward pass
    batch : samples of the script's batch; 0: unknown
    """

    def __init__(
        self,
        named: dict[int, tuple[str, str]],
        module: Callable[[], str],
        on_output: OnMap,
        on_backward: Callable[[Recorder], None],
        batch: int = 0,
    ) -> None:
        super().__init__()
        self.batch = batch
        self.doubled = DoubledBatch(batch, self._is_input) if batch else None
        self.named, self.module = named, module
        self.on_output, self.on_backward = on_output, on_backward
        self.optimizing = False
        self.dropping: Callable[[], bool] = lambda: False
        self.loss: float | None = None
        self.operators: list[dict[str, Any]] = []
        self.tensors: dict[tuple[Any, ...], int] = {}
        self._lies_in: list[int] = []
        self.storages: list[dict[str, Any]] = []
        self.references: list[StorageWeakRef] = []
        self._numbers: dict[int, int] = {}
        self._living: dict[int, StorageWeakRef] = {}
        self._views: dict[int, list[int]] = {}
        self._names: dict[str, int] = {}
        self._forward: dict[int, int] = {}
        self._in_backward = False
        self._behind_backward = False
        self._process = os.getpid()
        self.saved: list[dict[str, Any]] = []
        self.weight_shapes: set[tuple[int, ...]] = set()
        #: Whether what runs now is the host's: a data loader makes a batch.
        self.loading = False

    def __enter__(self) -> Recorder:
        super().__enter__()
        torch._C._autograd._push_saved_tensors_default_hooks(self._pack, self._unpack)
        return self

    def __exit__(self, *error: Any) -> None:
        torch._C._autograd._pop_saved_tensors_default_hooks()
        super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        phase = self._phase()
        if phase is None or os.getpid() != self._process:
            return func(*args, **kwargs)
        if phase == "backward" and not self._in_backward:
            self._in_backward = True
            self.on_backward(self)
        self._note_freed()
        number = len(self.operators)
        numbers = {id(t): self._tensor(t, phase, None) for t in _tensors((args, kwargs))}
        inputs = list(numbers.values())
        if func is torch.ops.aten.ones_like.default and phase == "forward" and args[0].numel() == 1:
            self.loss = _number(args[0])  # the start of autograd's backward pass
        result = func(*args, **kwargs)
        changed = list(_changed(func, args, kwargs))
        numbers |= {id(t): self._tensor(t, phase, number) for t in (*_tensors(result), *changed)}
        outputs = list(dict.fromkeys(numbers[id(t)] for t in (*_tensors(result), *changed)))
        kind = self._kind(func, inputs, outputs, bool(changed))
        if changed and func.overloadpacket.__name__ in _OVERWRITES:
            inputs = [t for t in inputs if t not in outputs]
        if not inputs and not outputs:  # marks of the profiler
            return result
        module, forward = self._origin(phase, number)
        doubled = None
        if self.doubled is not None:
            doubled = self.doubled.run(func, args, kwargs, result, lambda one: numbers.get(id(one), -1))
        flops = _flops(func, args, kwargs, result) if kind == "compute" else 0
        self.operators.append(
            {
                "name": str(func),
                "phase": phase,
                "kind": kind,
                "module": module,
                "forward": forward,
                "inputs": tuple(dict.fromkeys(inputs)),
                "outputs": tuple(outputs),
                "flops": flops,
                "arguments": dict(_arguments(func, args, kwargs)),
                "doubled": _flops(func, *doubled) if flops and doubled is not None else None,
            }
        )
        for index in outputs:
            self._name_output(self._lies_in[index], module, func.overloadpacket.__name__)
        if kind == "compute" and phase != "optimizer":
            for tensor in _tensors(result):
                self.on_output(self, number, tensor)
        return result

    def number_of(self, storage: torch.UntypedStorage) -> int | None:
        """Return the number of a storage; None if no operator has used it."""
        number = self._numbers.get(storage._cdata)
        return number if number is not None and number in self._living else None

    def lies_in(self, tensor: int) -> int:
        """Return the number of the storage that has a tensor's elements, from the tensor's number."""
        return self._lies_in[tensor]

    def alive(self) -> Iterator[tuple[int, StorageWeakRef]]:
        """Yield number and weak reference of each live storage."""
        self._note_freed()
        yield from list(self._living.items())

    def name(self, storage: torch.UntypedStorage, role: str, name: str) -> None:
        """Set the role and name of a storage."""
        number = self.number_of(storage)
        if number is not None:
            self.storages[number] |= {"role": role, "name": name}

    def graph(self, iteration: int, provenance: dict[str, str]) -> OperatorGraph:
        """Return the recorded operator graph."""
        self._note_freed()
        self._double_storages()
        storages = tuple(Storage(**{k: v for k, v in s.items() if k != "phase"}) for s in self.storages)
        tensors = tuple(
            replace(OperandTensor(*key), doubled=self.doubled.shape_of(number) if self.doubled else None)
            for number, key in enumerate(self.tensors)
        )
        saved = tuple(SavedOperand(**one) for one in self.saved)
        operators = tuple(Operator(**o) for o in self.operators)
        if self.doubled is not None and self.doubled.by_extents:
            provenance = provenance | {"by_extents": ", ".join(sorted(self.doubled.by_extents))}
        return OperatorGraph(storages, tensors, operators, iteration, provenance, saved, self.batch)

    def hold(self, tensor: torch.Tensor, role: str = "held", name: str = "") -> None:
        """Note a tensor that is there before the iteration, whether an operator reads it or not."""
        storage = tensor.untyped_storage()
        if self.number_of(storage) is None:
            known = self.named.setdefault(storage._cdata, (role, name or self._unique(role)))
            self._tensor(tensor, "forward", None)
            if known[0] == "held":
                del self.named[storage._cdata]  # a later one may have its address

    def add_input(self, tensor: torch.Tensor) -> None:
        """Note a tensor of the batch, once it is there."""
        storage = self.number_of(tensor.untyped_storage())
        if storage is None:
            number = max(len(self.operators) - 1, 0)
            self._tensor(tensor, "forward", number)
            storage = self.number_of(tensor.untyped_storage())
            assert storage is not None
            self.storages[storage]["name"] = ""
            if self.doubled is not None:
                self.doubled.add_input(self._views[storage][-1], tensor)
        if self.storages[storage]["role"] in ("temporary", "held") or not self.storages[storage]["name"]:
            self.storages[storage] |= {"role": "input", "name": self._unique("input")}

    def _pack(self, tensor: torch.Tensor) -> _Packed:
        """Note a tensor that autograd saves."""
        phase = self._phase()
        record = None
        if phase is not None and tensor.layout == torch.strided and not tensor.is_meta and os.getpid() == self._process:
            number = self._tensor(tensor, phase, None)
            last = max(len(self.operators) - 1, 0)
            record = {"tensor": number, "operator": last, "node": "", "module": self.module()}
            self.saved.append(record)
        return _Packed(tensor, record)

    def _unpack(self, packed: _Packed) -> torch.Tensor:
        node = torch._C._current_autograd_node()
        if packed.record is not None and node is not None:
            packed.record["node"] = node.name()
        return packed.tensor

    def _is_input(self, tensor: int) -> bool:
        return self.storages[self._lies_in[tensor]]["role"] in ("input", "held")

    def _double_storages(self) -> None:
        """Set each storage's bytes at twice the batch: as those of its largest view grow.

        What the last iteration left, and this one drops, grows as what this one leaves instead.
        """
        if self.doubled is None:
            return
        keys = list(self.tensors)
        for number, tensor in self.doubled.tensors.items():
            storage, (_, _, shape, strides, _, extent) = self.storages[self._lies_in[number]], keys[number]
            if 0 in strides:
                continue
            ratio = tensor.numel() / max(1, math.prod(shape))
            whole = extent == storage["bytes"]
            grown = tensor.untyped_storage().nbytes() if whole else round(storage["bytes"] * ratio)
            storage["doubled"] = max(storage["doubled"] or 0, grown)
        left = {
            one["bytes"]: one["doubled"]
            for one in self.storages
            if one["alloc_operator"] is not None and one["free_operator"] is None and one["doubled"]
        }
        for one in self.storages:
            if one["role"] == "held" and one["free_operator"] is not None and one["doubled"] is None:
                one["doubled"] = left.get(one["bytes"])

    def _phase(self) -> str | None:
        """Return the current pass; None where the host works: a data loader makes a batch."""
        if self.loading:
            return None
        if torch._C._current_graph_task_id() != -1:
            self._behind_backward = True
            return "backward"
        if torch.is_grad_enabled():
            self._behind_backward = False
            return "forward"
        return "optimizer" if self.optimizing or (self._behind_backward and not self.module()) else "forward"

    def _note_freed(self) -> None:
        """Record the storages that were freed during the previous operator."""
        last = len(self.operators) - 1
        expired = torch.UntypedStorage._expired
        for number in [number for number, reference in self._living.items() if expired(reference.cdata)]:
            del self._living[number]
            self.storages[number]["free_operator"] = max(last, self.storages[number]["alloc_operator"] or 0)

    def _tensor(self, tensor: torch.Tensor, phase: str, alloc_operator: int | None) -> int:
        storage = self._storage(tensor.untyped_storage(), phase, alloc_operator)
        size = tensor.element_size()
        strides, shape = tuple(tensor.stride()), tuple(tensor.shape)
        span = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1 if tensor.numel() else 0
        key = (storage, tensor.storage_offset() * size, shape, strides, str(tensor.dtype)[6:], span * size)
        if key not in self.tensors:
            number = self.tensors[key] = len(self.tensors)
            self._lies_in.append(storage)
            if self.doubled is not None:
                self._note_doubled(number, tensor, storage, alloc_operator)
        return self.tensors[key]

    def _note_doubled(self, number: int, tensor: torch.Tensor, storage: int, alloc_operator: int | None) -> None:
        """Note how a tensor depends on the batch that comes from outside, or is a view that no operator made."""
        assert self.doubled is not None
        of_storage = self._views.setdefault(storage, [])
        known = next((one for one in of_storage if one in self.doubled.tensors), None)
        of_storage.append(number)
        if known is not None:
            self.doubled.add_like(number, tensor, known)
        elif alloc_operator is None and self.storages[storage]["alloc_operator"] is None and len(of_storage) == 1:
            role = self.storages[storage]["role"]
            if role in ("input", "held") and tuple(tensor.shape) not in self.weight_shapes:
                self.doubled.add_input(number, tensor)

    def _storage(self, storage: torch.UntypedStorage, phase: str, alloc_operator: int | None) -> int:
        number = self.number_of(storage)
        if number is not None:
            # A storage can grow.
            self.storages[number]["bytes"] = max(self.storages[number]["bytes"], storage.nbytes())
            if alloc_operator is None and self.storages[number]["role"] == "held":
                self.storages[number] |= {"role": "input", "name": self._unique("input")}
            return number
        number = len(self.storages)
        role, name = self.named.get(storage._cdata, ("input", "")) if alloc_operator is None else ("", "")
        self.storages.append(
            {
                "bytes": storage.nbytes(),
                "role": role,
                "name": name,
                "alloc_operator": alloc_operator,
                "free_operator": None,
                "doubled": None,
            }
        )
        if alloc_operator is None and not name:
            self.storages[-1]["name"] = self._unique("input")
        elif alloc_operator is not None:
            self.storages[-1]["role"] = "gradient_map" if phase == "backward" else "temporary"
            self.storages[-1]["phase"] = phase if phase != "forward" or torch.is_grad_enabled() else "no_grad"
        reference = StorageWeakRef(storage)
        self.references.append(reference)  # keeps the storage object's address from being used again
        self._living[number] = reference
        self._numbers[storage._cdata] = number
        return number

    def _name_output(self, storage: int, module: str, operator: str) -> None:
        if not self.storages[storage]["name"]:
            phase = _SUFFIXES[self.storages[storage]["phase"]]
            self.storages[storage]["name"] = self._unique(f"{module or '(outside)'}{phase}: {operator}")

    def _unique(self, name: str) -> str:
        count = self._names[name] = self._names.get(name, 0) + 1
        return name if count == 1 else f"{name} #{count}"

    def _kind(self, func: Any, inputs: list[int], outputs: list[int], changes: bool) -> str:
        if func.overloadpacket.__name__ in _ALLOCATIONS:
            return "allocation"
        before = {self._lies_in[tensor] for tensor in inputs}
        views = outputs and all(self._lies_in[tensor] in before for tensor in outputs)
        return "view" if not changes and (views or not outputs) and inputs else "compute"

    def _origin(self, phase: str, number: int) -> tuple[str, int | None]:
        """Return the module and, for a backward operator, its forward operator by autograd's sequence numbers."""
        if phase == "forward":
            # Autograd creates a node before its operator runs, so the node has the last sequence number.
            self._forward.setdefault(torch.autograd._get_sequence_nr() - 1, number)
            return self.module(), None
        if phase == "backward":
            node = torch._C._current_autograd_node()
            forward = self._forward.get(node._sequence_nr()) if node is not None else None
            return (self.operators[forward]["module"] if forward is not None else ""), forward
        return "", None


class _Packed:
    """What autograd holds in place of a tensor that it saves; `record` is what the graph says of it."""

    __slots__ = ("record", "tensor")

    def __init__(self, tensor: torch.Tensor, record: dict[str, Any] | None) -> None:
        self.tensor, self.record = tensor, record


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    return (one for one in tensors_in(value) if one.layout == torch.strided and not one.is_meta)


def _changed(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that an operator changes in place."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name, args[position] if position < len(args) else None)
            yield from _tensors(value)


def _arguments(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Yield an operator's arguments other than tensors: numbers, switches, texts, and lists of the first two."""
    for position, argument in enumerate(func._schema.arguments):
        value = kwargs.get(argument.name, args[position] if position < len(args) else None)
        if isinstance(value, list | tuple) and all(isinstance(one, bool | int | float) for one in value):
            yield argument.name, tuple(value)
        elif isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            yield argument.name, value


def _flops(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    formula = flop_registry.get(func.overloadpacket)
    if formula is None:
        return 0
    try:
        return int(formula(*args, **kwargs, out_val=result))
    except Exception:  # PyTorch's formula doesn't support this call: the count is unknown
        return 0


def _number(tensor: torch.Tensor) -> float | None:
    storage = tensor.untyped_storage()
    if not readable(storage) or tensor.dtype not in (torch.float32, torch.float64, torch.float16):
        return None
    dtype = np.dtype(str(tensor.dtype)[6:])
    value = float(bytes_of(storage).view(dtype)[tensor.storage_offset()])
    return value if np.isfinite(value) else None
