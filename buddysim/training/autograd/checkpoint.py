"""Activation checkpointing as ``torch.utils.checkpoint`` does it without re-entry (``use_reentrant=False``).

In a region, what autograd saves is not stored. The first node of the region that runs in the backward pass runs the
region again, up to the last tensor that was saved (early stop); what is saved then lives until its node has run. The
region's inputs are saved when it begins, by the hooks that are active outside of it: so they may be offloaded. The
state of the random generators is on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar
from weakref import ref

from buddysim.training.autograd.autocast import Autocast
from buddysim.training.autograd.records import SavedTensor
from buddysim.training.autograd.replayed import (
    KeepResults,
    NotedResults,
    OperatorCache,
    OperatorStart,
    ReplayedResults,
)
from buddysim.training.autograd.saved_hooks import SavedTensorHooks, packed, saving_with, unpacked
from buddysim.training.autograd.stored_offload import OffloadedResults
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor

Function = Callable[..., Any]


class StopRecomputation(Exception):
    """All that the backward pass needs is there."""


class _Holder:
    """Stands for a saved tensor; dies with the node that saved it."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self) -> None:
        self.tensor: Tensor | None = None


class _PackedInput:
    """An argument of a region that hooks packed, with its position in the graph."""

    __slots__ = ("content", "node", "output", "requires_grad")

    def __init__(self, content: Any, argument: Tensor) -> None:
        self.content, self.requires_grad = content, argument.requires_grad
        self.node, self.output = argument.node, argument.output

    def unpack(self) -> Tensor:
        """Return the argument, as autograd unpacks it."""
        tensor: Tensor = unpacked(self.content)
        tensor = tensor.detach()
        tensor.requires_grad, tensor.node, tensor.output = self.requires_grad, self.node, self.output
        return tensor


class CheckpointedRegion(SavedTensorHooks):
    """Calls whose saved tensors are computed again; each but the first takes the result of the one before.

    Parameters
    ----------
    keeps : which operators' results are stored; None: none
    early_stop : whether the second run ends with the last tensor that is needed
    host, block : stored results that are offloaded, and the number of the region's block
    """

    records: ClassVar[bool] = False

    def __init__(
        self, tape: Tape, keeps: KeepResults | None = None, early_stop: bool = True,
        host: OffloadedResults | None = None, block: int = 0,
    ) -> None:  # fmt: skip
        self.tape, self.early_stop, self.scope = tape, early_stop, tape.scope
        self.host, self.block = host, block
        self.noted = NotedResults(tape, keeps, None if host is None else partial(host.store, block))
        self.autocast = None if tape.autocast is None else tape.autocast.dtype
        self.inputs: list[Any] = []
        self.calls: list[tuple[str, Function, tuple[Any, ...], dict[str, Any]]] = []
        self.holders: list[ref[_Holder]] = []
        self.stop: OperatorStart | None = None
        self.has_run_again = False

    def run(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a part of the region; the first one's arguments are saved."""
        if not self.calls:
            self.inputs = [self._saved(one, is_first=not number) for number, one in enumerate(args)]
            args_again: tuple[Any, ...] = ()
        else:
            args_again = args[1:]
        self.calls.append((self.tape.scope, function, args_again, kwargs))
        with ExitStack() as stack:
            self._enter(stack, self, self.noted)
            result = function(*args, **kwargs)
        self.noted.settle()
        return result

    def pack(self, tensor: Tensor, before: bool) -> _Holder:
        holder = _Holder()
        self.holders.append(ref(holder))
        self.stop = self.noted.last if before else None
        return holder

    def unpack(self, packed: _Holder) -> Tensor:
        if not self.has_run_again:
            self.has_run_again = True
            self._run_again()
        tensor, packed.tensor = packed.tensor, None
        assert tensor is not None
        return tensor

    def _saved(self, argument: Any, *, is_first: bool) -> Any:
        """Save an argument as hooks outside of the region do.

        PyTorch saves the first one, the features, where it needs no gradient either (behind a frozen embedding).
        transformers hands masks and positions over by name; those aren't saved.
        """
        tape = self.tape
        if not isinstance(argument, Tensor) or not (argument.requires_grad or is_first):
            return argument
        record = argument.storage.record
        if tape.saved_hooks is None or tape.saved_hooks.records:
            if record.kind == "temporary":
                record.kind = "activation"
            tape.saved.append(
                SavedTensor(
                    "checkpoint", "input", argument.shape, argument.strides, argument.dtype, record.number,
                    argument.producer, tape.scope, len(tape.operations) - 1,
                )
            )  # fmt: skip
        content = packed(tape, argument, False)
        return content if content is argument else _PackedInput(content, argument)

    def _enter(self, stack: ExitStack, hooks: SavedTensorHooks, cache: OperatorCache) -> None:
        stack.enter_context(saving_with(self.tape, hooks))
        before, self.tape.operator_cache = self.tape.operator_cache, cache

        def restore() -> None:
            self.tape.operator_cache = before

        stack.callback(restore)

    def _run_again(self) -> None:
        tape = self.tape
        if self.host is not None:
            self.host.backward_begins(self.block)
        args = [one.unpack() if isinstance(one, _PackedInput) else one for one in self.inputs]
        scope, node, grad_enabled = tape.scope, tape.node, tape.grad_enabled
        tape.node, tape.grad_enabled = "", True
        try:
            with ExitStack() as stack:
                stack.enter_context(tape.in_phase("recompute"))
                if self.autocast is not None:
                    stack.enter_context(Autocast(tape, self.autocast))
                stop = self.stop if self.early_stop else None
                self._enter(stack, _SecondRun(self), ReplayedResults(self.noted, stop))
                self._call(args)
        except StopRecomputation:
            pass
        finally:
            tape.scope, tape.node, tape.grad_enabled = scope, node, grad_enabled

    def _call(self, args: list[Any]) -> None:
        result: Any = None
        for number, (scope, function, rest, kwargs) in enumerate(self.calls):
            self.tape.scope = scope
            result = function(result, *rest, **kwargs) if number else function(*args, **kwargs)


class _SecondRun(SavedTensorHooks):
    """Hands what is saved to the holders of the first run, in their order."""

    records: ClassVar[bool] = False

    def __init__(self, region: CheckpointedRegion) -> None:
        self.region = region
        self.count = 0

    def pack(self, tensor: Tensor, before: bool) -> Tensor:
        holders = self.region.holders
        if tensor.requires_grad:
            tensor = tensor.detach()
        if tensor.storage.record.kind == "temporary":
            tensor.storage.record.kind = "activation"
        holder = holders[self.count]()
        if holder is not None:
            holder.tensor = tensor
        del holder
        self.count += 1
        if self.region.early_stop and self.count == len(holders):
            raise StopRecomputation
        return tensor

    def unpack(self, packed: Tensor) -> Tensor:
        return packed
