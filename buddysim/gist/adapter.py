"""Trains an unmodified PyTorch module through Gist's encodings, on the CPU; needs the extra ``[torch]``.

```
gist = Gist(module, "fp8")
for images, labels in batches:
    with gist:
        loss = criterion(module(images), labels)
        loss.backward()
    optimizer.step()
print(gist.report)
```

Saved tensors go through `torch.autograd.graph.saved_tensors_hooks`, storage by storage. The first iteration encodes
nothing. It records which operator writes each storage, the last operator that reads it in the forward pass, and the
operators that read it in the backward pass. From the second iteration on, a storage is encoded once, right after its
last forward reader. If the sequence of operators changes, it is recorded again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from buddysim.base.errors import BuddysimError
from buddysim.gist.encoded_storage import EncodedStorage, RawStorage, encode_storage
from buddysim.gist.formats import DprFormat, find_format
from buddysim.gist.policy import EncodingChoice, StorageOrigin, choose_encoding


@dataclass(frozen=True)
class StashReport:
    """Bytes stored between the forward and the backward pass, once per storage, without parameters.

    Attributes
    ----------
    raw_bytes : bytes that autograd saves without encodings, in the recorded iteration
    stored_bytes : bytes stored with encodings, in the last iteration
    encoded : number of storages by encoding
    """

    raw_bytes: int = 0
    stored_bytes: int = 0
    encoded: dict[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Raw over stored bytes."""
        return self.raw_bytes / self.stored_bytes if self.stored_bytes else 1.0


@dataclass
class _Stash:
    """A storage of which autograd saved tensors."""

    number: int
    reference: Any  # weak reference: it reserves the storage's address, not its bytes
    origin: StorageOrigin
    content: EncodedStorage | None
    pinned: torch.UntypedStorage | None  # until it is encoded
    saved: int = 0
    read: int = 0
    decoded: torch.Tensor | None = None
    changed: str = ""  # the operator that changed it after it was saved


@dataclass
class _SavedTensorHandle:
    """Object that autograd saves in place of a tensor."""

    stash: _Stash
    dtype: torch.dtype
    size: torch.Size
    stride: tuple[int, ...]
    offset: int


@dataclass
class _StorageRecord:
    """Properties of a storage in the recorded iteration."""

    origin: StorageOrigin
    byte_count: int
    last_use: int
    readers: set[str] = field(default_factory=set)


class Gist:
    """Context for the forward and backward pass of a module; one iteration per entry.

    Parameters
    ----------
    module : module whose parameters and buffers are never encoded
    format : ``"fp16"``, ``"fp10"``, ``"fp8"``: delayed precision reduction; None: lossless encodings alone

    Raises
    ------
    BuddysimError
        if the format is unknown, or the module is not on the CPU
    """

    def __init__(self, module: torch.nn.Module, format: str | None = None) -> None:
        self.format: DprFormat | None = None if format is None else find_format(format)
        self.module = module
        self.report = StashReport()
        for name, parameter in module.named_parameters():
            if parameter.device.type != "cpu":
                raise BuddysimError(f"{name}: is on {parameter.device}: expected a module on the CPU")
        self._records: dict[int, _StorageRecord] | None = None
        self._iteration: _Iteration | None = None

    def __enter__(self) -> Gist:
        if self._iteration is not None:
            raise BuddysimError("Gist: an iteration is under way: expected one iteration at a time")
        self._iteration = _Iteration(self, self._records)
        self._iteration.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        iteration, self._iteration = self._iteration, None
        assert iteration is not None
        iteration.__exit__(*raised)
        if raised[0] is None:
            self.report = iteration.report(self.report)
            self._records = iteration.records()


class _Iteration(TorchDispatchMode):  # type: ignore[misc]
    """Observes every operator of one iteration, and the tensors that autograd saves and reads."""

    def __init__(self, gist: Gist, known: dict[int, _StorageRecord] | None) -> None:
        super().__init__()
        self.format, self.known = gist.format, known
        tensors = [*gist.module.parameters(), *gist.module.buffers()]
        self.never_encoded = {tensor.untyped_storage()._cdata for tensor in tensors}
        self.operators = 0
        self.stashes: dict[int, _Stash] = {}
        self.origins: dict[int, StorageOrigin] = {}
        self.references: dict[int, Any] = {}
        self.seen: dict[int, _StorageRecord] = {}
        self.due: dict[int, list[_Stash]] = {}
        self.unread: list[_Stash] = []
        self.deviates = False
        self.backward = False
        self.stored_bytes = 0
        self.hooks = saved_tensors_hooks(self.pack, self.unpack)

    def __enter__(self) -> _Iteration:
        super().__enter__()
        self.hooks.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.hooks.__exit__(*raised)
        super().__exit__(*raised)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func.overloadpacket.__name__)
        self.operators += 1
        self._note_readers(name)
        tensors = [leaf for leaf in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        for tensor in tensors:
            stash = self.stashes.get(tensor.untyped_storage()._cdata)
            if stash is not None and not self.backward:
                self.seen[stash.number].last_use = self.operators
        result = func(*args, **(kwargs or {}))
        self._note_writes(func, name, args, kwargs or {})
        outputs = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        for position, output in enumerate(outputs):
            self._note_origin(name, position, output, args)
        if not self.backward:
            for stash in self.due.pop(self.operators, ()):
                self._encode(stash)
        return result

    # Operators.

    def _note_origin(self, name: str, position: int, output: torch.Tensor, args: Any) -> None:
        storage = output.untyped_storage()
        key = storage._cdata
        known = key in self.references and not self.references[key].expired()
        if known and self.origins[key].operator != "" and name not in ("relu_", "relu", "threshold_", "bernoulli_"):
            return  # a view, or an in-place change of a known storage
        self.references[key] = StorageWeakRef(storage)
        windows = _windows_of(output, args) if name == "max_pool2d_with_indices" and position == 1 else None
        self.origins[key] = StorageOrigin(name, position, windows)

    def _note_writes(self, func: Any, name: str, args: Any, kwargs: Any) -> None:
        """Note storages that change after they were saved: the backward pass cannot read them."""
        for argument, value in zip(func._schema.arguments, args, strict=False):
            written = argument.alias_info is not None and argument.alias_info.is_write
            if written and isinstance(value, torch.Tensor):
                self._changed(value, name)
        for argument in func._schema.arguments:
            value = kwargs.get(argument.name)
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, torch.Tensor):
                self._changed(value, name)

    def _changed(self, tensor: torch.Tensor, name: str) -> None:
        stash = self.stashes.get(tensor.untyped_storage()._cdata)
        if stash is not None:
            stash.changed = name

    # Saved tensors.

    def pack(self, tensor: torch.Tensor) -> Any:
        """Return a handle of a tensor; for a parameter, the tensor itself."""
        storage = tensor.untyped_storage()
        if self.backward or storage._cdata in self.never_encoded or tensor.device.type != "cpu":
            return tensor
        stash = self.stashes.get(storage._cdata)
        if stash is None or stash.reference.expired():
            stash = self._new_stash(tensor, storage)
        stash.saved += 1
        if stash.content is not None or stash.changed:
            # encoded before this operator saved it, or changed since another operator saved it: store it raw
            stash = self._new_stash(tensor, storage, alone=True)
            stash.saved += 1
        return _SavedTensorHandle(stash, tensor.dtype, tensor.size(), tensor.stride(), int(tensor.storage_offset()))

    def _new_stash(self, tensor: torch.Tensor, storage: torch.UntypedStorage, alone: bool = False) -> _Stash:
        number = len(self.seen)
        origin = self.origins.get(storage._cdata, StorageOrigin("", 0, None))
        stash = _Stash(number, StorageWeakRef(storage), replace(origin, dtype=str(tensor.dtype)), None, storage)
        self.seen[number] = _StorageRecord(stash.origin, storage.nbytes(), self.operators)
        self.stashes[storage._cdata] = stash
        self.unread.append(stash)
        if self.known is not None:
            before = self.known.get(number)
            same = before is not None and (before.origin, before.byte_count) == (stash.origin, storage.nbytes())
            if not same:
                self.deviates = True
            elif before is not None and not alone and before.last_use > self.operators:
                self.due.setdefault(before.last_use, []).append(stash)
        return stash

    def _encode(self, stash: _Stash) -> None:
        if stash.content is not None or stash.pinned is None:
            return
        before = None if self.known is None or self.deviates else self.known.get(stash.number)
        encoding = (
            EncodingChoice("raw") if before is None else choose_encoding(stash.origin, before.readers, self.format)
        )
        with _DispatchDisabled():
            stash.content = encode_storage(stash.pinned, encoding)
        stash.pinned = None

    # Tensors that the backward pass reads.

    def unpack(self, handle: Any) -> torch.Tensor:
        """Return the tensor of a handle.

        Raises
        ------
        BuddysimError
            if an operator changed the tensor after it was saved
        """
        if isinstance(handle, torch.Tensor):
            return handle
        if not self.backward:
            self._begin_backward()
        stash: _Stash = handle.stash
        if stash.changed:
            maker = stash.origin.operator or "the input"
            raise BuddysimError(
                f"{stash.changed}: changes a tensor of {tuple(handle.size)} that {maker} made and that was saved for a "
                "backward step: expected no change before that step"
            )
        self._reading.append(stash)
        assert stash.content is not None
        stash.read += 1
        with _DispatchDisabled():
            flat = stash.content.decoded() if stash.decoded is None else stash.decoded
            stash.decoded = flat if stash.read < stash.saved else None
            empty = torch.empty(0, dtype=handle.dtype)
            return empty.set_(flat.untyped_storage(), handle.offset, handle.size, handle.stride)

    _reading: list[_Stash]

    def _begin_backward(self) -> None:
        self.backward = True
        self._reading = []
        for stash in self.unread:
            self._encode(stash)
        self.stored_bytes = sum(stash.content.nbytes for stash in self.unread if stash.content is not None)

    def _note_readers(self, name: str) -> None:
        if self.backward and name not in ("detach", "set_", "empty"):
            for stash in self._reading:
                self.seen[stash.number].readers.add(name)
                self._check_reader(stash, name)
            self._reading = []

    def _check_reader(self, stash: _Stash, name: str) -> None:
        """Check the reader of a mask: only readers of the recorded iteration can use bits."""
        bits = stash.content is not None and stash.content.name == "bits"
        if bits and self.known is not None and name not in self.known[stash.number].readers:
            raise BuddysimError(
                f"{name}: reads what {stash.origin.operator} made, stored as one bit per element: expected the "
                "backward pass of the recorded iteration (a new Gist records another one)"
            )

    # End of the iteration.

    def records(self) -> dict[int, _StorageRecord] | None:
        """Return the records for the next iteration; None without records."""
        if self.known is not None and not self.deviates:
            return self.known
        return None if self.deviates else self.seen

    def report(self, before: StashReport) -> StashReport:
        """Return the report of this iteration."""
        kinds: dict[str, int] = {}
        for stash in self.unread:
            name = stash.content.name if stash.content is not None else RawStorage.name
            kinds[name] = kinds.get(name, 0) + 1
        raw = sum(record.byte_count for record in self.seen.values())
        return StashReport(raw, self.stored_bytes, kinds)


class _DispatchDisabled:
    """Context without dispatch mode and hooks, for operators of the encodings themselves."""

    def __enter__(self) -> None:
        self._guard = torch._C._DisableTorchDispatch()

    def __exit__(self, *raised: Any) -> None:
        del self._guard


def _windows_of(output: torch.Tensor, args: Any) -> tuple[Any, ...]:
    """Extents and windows of a max pool, from its arguments."""
    image, kernel, stride, pad, dilation = (*args[:5], *([], 0, 1)[len(args) - 2 :])[:5]
    return (
        tuple(image.shape[-2:]), tuple(output.shape[-2:]), _pair(kernel), _pair(stride or kernel), _pair(pad),
        _pair(dilation),
    )  # fmt: skip


def _pair(value: Any) -> tuple[int, int]:
    values = [value] if isinstance(value, int) else list(value)
    return int(values[0]), int(values[-1])
