"""Weights in host memory, fetched for the time of a block's passes.

As FSDP2's ``CPUOffloadPolicy`` does it (``torch/distributed/fsdp/_fully_shard``): a block's weights are fetched before
its forward pass and given back behind it, and again around its backward pass. Those outside of blocks stay from the
first forward operation to the end of the backward pass. On one GPU, FSDP2 copies between the computations. Fetching
ahead on a stream is what DeepSpeed's ZeRO-Infinity does (``partitioned_param_coordinator.py``, `fetch_sub_module`), and
FSDP2 on several GPUs: the copies of the next block wait for what the block before it has given back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.arguments import behind, replaced, with_gradient
from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.autograd.module import Module, ModuleHooks, Parameter
from buddysim.training.autograd.records import HostBuffer, HostCopy, HostTask
from buddysim.training.options.weights_offload import WeightsOffload
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape
    from buddysim.training.step.training_step import TrainingStep


class HostWeights(StepPart):
    """All weights of a model on the host.

    Attributes
    ----------
    blocks : in their order
    rest : the weights outside of blocks
    """

    def __init__(self, rule: WeightsOffload) -> None:
        self.rule = rule
        self.blocks: list[FetchedBlock] = []
        self.rest: FetchedBlock | None = None

    def model_built(self, step: TrainingStep) -> None:
        """Put the weights on the host.

        Raises
        ------
        BuddysimError
            weights that are divided among GPUs already
        """
        if step.options.sharding is not None:
            raise BuddysimError("weights on the host: several GPUs aren't simulated with them: expected one")
        model, tape = step.model, step.tape
        model.name_scopes()
        rest = {id(one): one for one in model.parameters()}
        for _, block in blocks_of(model):
            own = [rest.pop(id(one)) for one in block.parameters() if id(one) in rest]
            self.blocks.append(FetchedBlock(tape, self.rule, block, own))
        for number, one in enumerate(self.blocks):
            one.number, one.others = number, self.blocks
            one.module.add_hooks(one)
        self.rest = FetchedBlock(tape, self.rule, model, list(rest.values()))

    @contextmanager
    def forward(self, step: TrainingStep) -> Iterator[None]:
        """Fetch what lies outside of blocks."""
        assert self.rest is not None
        self.rest.fetch(())
        self.rest.wait()
        yield

    @contextmanager
    def backward(self, step: TrainingStep) -> Iterator[None]:
        step.tape.after_backward.append(self._finish)
        yield

    def _finish(self) -> None:
        assert self.rest is not None
        for one in (*self.blocks, self.rest):
            one.give_back()


class FetchedBlock(ModuleHooks):
    """Weights that are fetched together.

    Attributes
    ----------
    copies : operations that fetch the weights; None while these are on the host
    """

    def __init__(self, tape: Tape, rule: WeightsOffload, module: Module, weights: Sequence[Parameter]) -> None:
        self.tape, self.rule, self.module, self.weights = tape, rule, module, weights
        self.number = 0
        self.others: Sequence[FetchedBlock] = ()
        self.copies: list[int] | None = None
        self.is_in_backward = False
        self.buffers: list[int] = []
        for one in weights:
            size = one.numel() * one.dtype.size
            self.buffers.append(len(tape.host_buffers))
            tape.host_buffers.append(HostBuffer(size, 0, lasts=True))
            tape.host_bytes += size if rule.device == "host" else 0
            record = one.storage.record
            record.kind, record.producer = "gathered", "prefetch"
            one.storage.release()

    # Forward.

    def before_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        self._fetch_with(range(self.number, self.number + 1 + self.rule.ahead))
        self.is_in_backward = False
        tensors = list(with_gradient((args, kwargs)))
        if not tensors:
            return args, kwargs
        outputs = iter(behind("RegisterPostBackwardFunctionBackward", self.give_back, tensors))
        del tensors
        return replaced(args, kwargs, lambda one: next(outputs) if one.records else one)

    def after_forward(self, output: Any) -> Any:
        self.give_back()
        for tensor in with_gradient(output):
            if tensor.node is not None:
                tensor.node.hooks = [*(tensor.node.hooks or ()), self._before_backward]
        return output

    def _before_backward(self) -> None:
        if not self.is_in_backward:
            self.is_in_backward = True
            self._fetch_with(range(self.number, self.number - 1 - self.rule.ahead, -1))

    # Copies.

    def _fetch_with(self, numbers: range) -> None:
        """Fetch the block that runs, wait for it, and fetch others ahead."""
        computed = self.tape.last_computation()
        for number in numbers:
            if 0 <= number < len(self.others):
                self.others[number].fetch(computed)
            if number == self.number:
                self.wait()

    def fetch(self, after: tuple[int, ...]) -> None:
        """Begin to fetch the weights, unless they are there or pending.

        Parameters
        ----------
        after : computations that the copies wait for
        """
        if self.copies is not None:
            return
        tape, self.copies = self.tape, []
        with tape.in_scope(self.module.path):
            for weight, buffer in zip(self.weights, self.buffers, strict=True):
                size, earlier = tape.host_buffers[buffer].bytes, after
                if self.rule.device == "nvme":
                    read = HostTask("nvme_read", size)
                    tape.launch("nvme_read", (), (), stream="nvme", task=read, after=after)
                    earlier = (len(tape.operations) - 1,)
                weight.storage.restore()
                copy = HostCopy("prefetch", size, buffer)
                stream = "prefetch" if self.rule.ahead else "compute"
                tape.launch("prefetch", (), (weight,), stream=stream, copy=copy, after=earlier)  # type: ignore[arg-type]
                self.copies.append(len(tape.operations) - 1)

    def wait(self) -> None:
        """Let the computations wait for the weights."""
        if self.copies and self.rule.ahead:
            self.tape.launch("wait", (), (), after=tuple(self.copies))

    def give_back(self) -> None:
        """Give the memory of the weights back."""
        if self.copies is not None:
            self.copies = None
            for one in self.weights:
                one.storage.release()
