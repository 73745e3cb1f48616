"""Observes a training script in its process: tracks iterations and modules, and takes the snapshots."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves
from torch.utils.data.dataloader import _BaseDataLoaderIter

import buddysim
from buddysim.capture.page_sampling import contents_budgets, resample_pages
from buddysim.capture.torch.batch_finder import BatchFinder
from buddysim.capture.torch.feature_maps import FeatureMapRecorder
from buddysim.capture.torch.recorder import Recorder, bytes_of, check_version, readable
from buddysim.capture.torch.snapshot_schedule import SnapshotSchedule
from buddysim.capture.torch.spool import Progress, Spool, SpooledSnapshot, StorageContents, storage_contents
from buddysim.compress import DEFAULT


@dataclass(frozen=True)
class ObserverSettings:
    """Settings of an observer.

    Attributes
    ----------
    snapshots : observed iterations
    steps : iterations of the training; None if unknown
    contents_bytes : bytes of contents per snapshot, approximately
    maps_path : path of the activations file; None: no file
    stored_samples : samples of each feature map whose values it stores
    source : description of the script
    compressor : of the size maps
    batch : samples of the script's batch; 0: found from its data loader, or from what its modules take
    graph_only : whether the operator graph is all that is written
    """

    snapshots: int = 10
    steps: int | None = None
    contents_bytes: int = 1 << 20
    maps_path: str | None = None
    stored_samples: int = 1
    source: str = ""
    compressor: str = DEFAULT
    batch: int = 0
    graph_only: bool = False


class Observer:
    """Observer of a training; each step of its first optimizer ends an iteration."""

    def __init__(self, spool: Spool, settings: ObserverSettings) -> None:
        self.spool, self.settings = spool, settings
        self.schedule = SnapshotSchedule(settings.snapshots, settings.steps)
        self.iteration = 0
        self.problem = ""
        self._thread = threading.get_ident()
        self._hooks: list[Any] = []
        self._modules: list[str] = []
        self._paths: dict[int, str] = {}
        self._dropout = 0
        self._recorder: Recorder | None = None
        self._roots: dict[int, torch.nn.Module] = {}
        self._optimizer: int | None = None
        self._optimizer_name = ""
        self._optimizers: set[int] = set()
        #: Whether an optimizer stepped for the first time in this iteration: it made its state.
        self._makes_state = False
        #: Contents of named storages, and of written storages by their number.
        self._named: dict[str, StorageContents] = {}
        self._written: dict[int, StorageContents] = {}
        self._has_graph = False
        self._due = False
        self._stepping = self._began_in_step = False
        self._batches = BatchFinder(settings.batch)
        self._next_of_loader, self._torch_compile = _BaseDataLoaderIter.__next__, torch.compile
        self._maps: FeatureMapRecorder | None = None
        if settings.maps_path is not None:
            provenance = {
                "tool": "buddysim capture torch",
                "version": buddysim.__version__,
                "source": settings.source,
                "program": f"PyTorch {torch.__version__} on the CPU",
                "observed": "the batches that the script trained with, in its own training steps",
            }
            self._maps = FeatureMapRecorder(Path(settings.maps_path), provenance, settings.stored_samples)

    def start(self) -> None:
        """Begin the observation."""
        check_version()
        self._hooks += [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        _BaseDataLoaderIter.__next__ = lambda loading: self._load(loading)  # type: ignore[method-assign,unused-ignore]
        torch.compile = self._compile
        self._await()

    def stop(self, state: str = "finished", *, finished: bool = True) -> None:
        """End the observation; contents of an unfinished iteration are kept, if any."""
        if self._recorder is not None:
            self._leave()
            if not finished and self._written:
                self._keep(self.iteration)
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        _BaseDataLoaderIter.__next__ = self._next_of_loader  # type: ignore[method-assign,unused-ignore]
        torch.compile = self._torch_compile
        if self._maps is not None:
            self._maps.close(state, finished=finished)
        self._write_progress(finished)

    def _await(self) -> None:
        """Prepare the observation of the next iteration, if it is due."""
        of_graph = self.iteration < 2 or self._makes_state
        self._due = of_graph if self.settings.graph_only else self.schedule.due(self.iteration)
        self._makes_state = False
        if self._due and len(self._hooks) == 2:
            self._hooks += [
                register_module_forward_pre_hook(self._before_module),
                register_module_forward_hook(self._after_module, always_call=True),
            ]
        elif not self._due and len(self._hooks) == 4:
            for hook in self._hooks[2:]:
                hook.remove()
            del self._hooks[2:]
        self._modules.clear()
        self._dropout = 0
        if self._due and self.iteration:
            self._enter()

    def _compile(self, *args: Any, **kwargs: Any) -> Any:
        """Let the script compile, and say what that means for the capture."""
        self.problem = "torch.compile: observed iterations run uncompiled: printed losses may differ in their last bits"
        return self._torch_compile(*args, **kwargs)

    def _load(self, loading: Any) -> Any:
        """Let a data loader make a batch: work of the host."""
        recorder = self._recorder
        self._batches.loaded(loading)
        if recorder is None or threading.get_ident() != self._thread:
            return self._next_of_loader(loading)
        recorder.loading = True
        try:
            loaded = self._next_of_loader(loading)
        finally:
            recorder.loading = False
        for one in tree_leaves(loaded):
            if isinstance(one, torch.Tensor) and one.layout == torch.strided:
                recorder.add_input(one)
        return loaded

    def _before_module(self, module: torch.nn.Module, args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        # What a backward pass computes again is a part of a model, and takes what the part before it made.
        if not self._modules and torch._C._current_graph_task_id() < 0:
            self._roots[id(module)] = module
            self._paths.update({id(child): name for name, child in module.named_modules()})
            if self._due and torch.is_grad_enabled() and module.training:
                if self._recorder is None:
                    self._enter()
                taken = list(_tensors_of_call(args))
                if next(module.parameters(), None) is not None:
                    self._batches.called(taken)
                for tensor in taken:
                    if self._recorder is not None and not tensor.requires_grad and tensor.layout == torch.strided:
                        self._recorder.add_input(tensor)
        self._modules.append(self._paths.get(id(module)) or type(module).__name__)
        self._dropout += isinstance(module, torch.nn.modules.dropout._DropoutNd)

    def _after_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        if threading.get_ident() == self._thread and self._modules:
            self._modules.pop()
            self._dropout -= isinstance(module, torch.nn.modules.dropout._DropoutNd)

    def _enter(self) -> None:
        named, names = {}, self._weight_names()
        for root in self._roots.values():
            for name, buffer in root.named_buffers():
                named[buffer.untyped_storage()._cdata] = ("buffer", f"buffer: {name}")
            for parameter in root.parameters():
                named[parameter.untyped_storage()._cdata] = ("weight", f"weight: {names[id(parameter)]}")
        recorder = Recorder(named, self._module, self._output, self._backward, self._batches.batch)
        recorder.weight_shapes = {tuple(one.shape) for root in self._roots.values() for one in root.parameters()}
        recorder.dropping = lambda: self._dropout > 0
        self._named, self._written = {}, {}
        if self._maps is not None:
            self._maps.begin()
        recorder.optimizing = self._began_in_step = self._stepping
        self._hold(recorder)
        recorder.__enter__()
        self._recorder = recorder

    def _hold(self, recorder: Recorder) -> None:
        """Note what is there before the iteration: what no operator of it reads takes memory all the same."""
        names = self._weight_names()
        tensors = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor) and _is_plain(one)]
        for tensor in tensors:
            if tensor.is_leaf and tensor.grad is not None and _is_plain(tensor.grad):
                recorder.hold(tensor.grad, "gradient", f"gradient: {names.get(id(tensor), 'of the script')}")
        for tensor in tensors:
            if tensor.untyped_storage().nbytes():
                recorder.hold(tensor)

    def _leave(self) -> None:
        if self._recorder is not None:
            self._recorder.__exit__(None, None, None)

    def _module(self) -> str:
        return self._modules[-1] if self._modules else ""

    def _output(self, recorder: Recorder, number: int, tensor: torch.Tensor) -> None:
        """Copy the output of an operator at once: it may be overwritten soon."""
        if self._maps is not None and recorder.operators[number]["phase"] == "forward" and torch.is_grad_enabled():
            self._maps.add(recorder, number, tensor)
        if self.settings.graph_only:
            return
        number_of_storage = recorder.number_of(tensor.untyped_storage())
        if number_of_storage is None or recorder.storages[number_of_storage]["alloc_operator"] is None:
            return
        storage = recorder.storages[number_of_storage]
        contents = self._contents(storage["name"], storage["role"], tensor.untyped_storage())
        if contents is not None:
            self._written[number_of_storage] = contents

    def _backward(self, recorder: Recorder) -> None:
        """Mark the forward pass's live results as stashed feature maps, before the backward pass."""
        for number, reference in recorder.alive():
            storage = recorder.storages[number]
            if storage["alloc_operator"] is not None and storage.get("phase") == "forward":
                storage["role"] = "feature_map"
            elif storage["role"] == "input":
                alive = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
                contents = self._contents(storage["name"], "input", alive)
                if contents is not None:
                    self._named[contents.name] = contents

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if self._optimizer is None:
            self._optimizer, self._optimizer_name = id(optimizer), type(optimizer).__name__
        self._makes_state |= id(optimizer) not in self._optimizers
        self._optimizers.add(id(optimizer))
        if id(optimizer) == self._optimizer:
            self._stepping = True
        if self._recorder is not None:
            self._recorder.optimizing = True
            self._copy_weights(self._recorder, optimizer)

    def _copy_weights(self, recorder: Recorder, optimizer: torch.optim.Optimizer) -> None:
        for name, parameter in self._parameters(optimizer):
            self._name(recorder, parameter, "weight", f"weight: {name}")
            if parameter.grad is not None and parameter.grad.layout == torch.strided:
                self._name(recorder, parameter.grad, "gradient", f"gradient: {name}")
            for key, value in _state_of(optimizer, parameter):
                self._name(recorder, value, "optimizer", f"optimizer: {name} {key}")

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        first = id(optimizer) == self._optimizer
        if self._recorder is not None:
            if first and self._began_in_step:  # by a closure: no gradient existed before the step
                self._copy_weights(self._recorder, optimizer)
            for name, parameter in self._parameters(optimizer):
                for key, value in _state_of(optimizer, parameter):  # created in the first step
                    self._recorder.name(value.untyped_storage(), "optimizer", f"optimizer: {name} {key}")
            self._recorder.optimizing = False
        if not first:
            return
        self._stepping = False
        if self._recorder is not None:
            self._leave()
            rate = optimizer.param_groups[0].get("lr")
            self._keep(self.iteration, float(rate) if isinstance(rate, int | float) else None)
        self.iteration += 1
        self._write_progress(False)
        self._await()

    def _weight_names(self) -> dict[int, str]:
        """The name of each weight by its identity; of those of several models with one name each has its own."""
        names: dict[int, str] = {}
        count: Counter[str] = Counter()
        for root in self._roots.values():
            for name, weight in root.named_parameters():
                if id(weight) not in names:
                    count[name] += 1
                    names[id(weight)] = name if count[name] == 1 else f"{name} #{count[name]}"
        return names

    def _parameters(self, optimizer: torch.optim.Optimizer) -> list[tuple[str, torch.Tensor]]:
        names = self._weight_names()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        return [(names.get(id(p), f"parameter {number}"), p) for number, p in enumerate(parameters)]

    def _name(self, recorder: Recorder, tensor: torch.Tensor, role: str, name: str) -> None:
        storage = tensor.untyped_storage()
        recorder.name(storage, role, name)
        contents = self._contents(name, role, storage)
        if contents is not None:
            self._named[name] = contents

    def _contents(self, name: str, role: str, storage: torch.UntypedStorage | None) -> StorageContents | None:
        if storage is None or not storage.nbytes():
            return None
        if self.settings.graph_only:
            return None
        if not readable(storage):
            self.problem = f"memory of device {storage.device} can't be read: only what lies on the CPU is captured"
            return None
        return storage_contents(name, role, bytes_of(storage), self.settings.contents_bytes, self.settings.compressor)

    def _keep(self, iteration: int, learning_rate: float | None = None) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        if self.settings.graph_only:
            if iteration or not self._has_graph:
                self.spool.keep_graph(recorder.graph(iteration, {"optimizer": self._optimizer_name}))
            self._has_graph = True
            return
        # Every storage's role is known only at this point; gradients were copied before the step.
        for number, contents in self._written.items():
            name, role = recorder.storages[number]["name"], recorder.storages[number]["role"]
            self._named.setdefault(name, replace(contents, name=name, role=role))
        storages = tuple(self._within_budget(list(self._named.values())))
        self.spool.keep(SpooledSnapshot(iteration, recorder.loss, storages, self.settings.compressor))
        for dropped in self.schedule.took(iteration):
            self.spool.drop(dropped)
        # The first iteration also creates the optimizer's state: a later one is more typical.
        if not self._has_graph:
            self.spool.keep_graph(recorder.graph(iteration, {"optimizer": self._optimizer_name}))
            self._has_graph = iteration > 0 and not self._makes_state
        if self._maps is not None:
            self._maps.end(iteration, recorder.loss, learning_rate)
        self._named, self._written = {}, {}

    def _within_budget(self, taken: list[StorageContents]) -> Iterator[StorageContents]:
        """Contents of a snapshot within the budget of the whole file: what the spool holds, and the file selects of."""
        budget = self.settings.contents_bytes * self.settings.snapshots
        for one, keep in zip(taken, contents_budgets([one.bytes for one in taken], budget), strict=True):
            pages, data = resample_pages(one.pages, one.data, keep, 0)
            yield replace(one, pages=pages, data=data)

    def _write_progress(self, finished: bool) -> None:
        self.spool.write_progress(Progress(self.iteration, finished, self.problem))


def _state_of(optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of an optimizer's state of a parameter, by their keys."""
    for key, value in optimizer.state.get(parameter, {}).items():
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            yield str(key), value


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor has memory of its own on the CPU."""
    return tensor.layout == torch.strided and tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor)


def _tensors_of_call(args: Any) -> Iterator[torch.Tensor]:
    """The tensors that a module is called with; PyTorch tells hooks of all modules the positional ones alone."""
    frame = sys._getframe(1)
    while frame is not None and "_call_impl" not in frame.f_code.co_qualname:
        frame = frame.f_back  # type: ignore[assignment]
    named = {} if frame is None else frame.f_locals.get("kwargs", {})
    return (one for one in tree_leaves((args, named)) if isinstance(one, torch.Tensor))
