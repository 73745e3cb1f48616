"""FSDP2: each GPU holds a part of every weight, and gathers a block's weights for the time of its passes.

PyTorch 2.13, ``torch/distributed/fsdp/_fully_shard``: what `fully_shard` of each block and of the whole model does, in
the order in which the host calls it. The GPU that is simulated is the first one, whose parts are the largest.

forward
    Before a block: its parts, cast where the policy says so, are copied into the buffer of an all-gather; when that is
    done, the weights are copied out of it (``split_with_sizes_copy``). The buffer lives until the next block's weights
    are copied out, so that these live twice then, and once more a block's. Behind the block the weights are given back.
backward
    Before a block: the same, and the all-gather of the block before it. Behind it: gradients are put into one buffer,
    which is reduced and scattered; it lives until the next block is done. Parts of gradients of a block are one tensor.
the model itself
    is a group of the weights outside of blocks. They stay gathered between the passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from buddysim.training.autograd.arguments import behind, replaced, with_gradient
from buddysim.training.autograd.blocks import blocks_of
from buddysim.training.autograd.dtypes import DType, uint8
from buddysim.training.autograd.layout import contiguous_strides
from buddysim.training.autograd.module import Module, ModuleHooks, Parameter
from buddysim.training.autograd.records import Collective
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.sharding.shard import ShardedParameter, owners_of

_State = Literal["idle", "forward", "pre_backward", "post_backward"]


@dataclass(frozen=True)
class FsdpPolicy:
    """How a model is sharded.

    Attributes
    ----------
    gpus : among which everything is divided
    own_dtype : of the parts of weights that are trained; None: their own
    param_dtype : in which weights are gathered; None: their own
    reduce_dtype : in which gradients are reduced; None: their own
    reshard_after_forward : blocks give their weights back behind the forward pass
    gather_ahead : blocks whose weights are gathered ahead; None: the next one in the backward pass alone
    """

    gpus: int
    own_dtype: DType | None = None
    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    reshard_after_forward: bool = True
    gather_ahead: int | None = None


class FullySharded:
    """A model whose weights are divided; they are so from now on.

    Attributes
    ----------
    groups : of the model first, then of the blocks
    last_gather : buffer of the all-gather before, which lives until the next one is copied out
    gather_after : operation that the next all-gather waits for: in the forward pass, that which copied out the weights
        before the last ones, else the last ones (the events that `wait_for_unshard` records)
    copied_out : operation that copied out the last weights of the forward pass
    reduced : buffers of reduce-scatters that may run still, and the operations that scatter them
    order : groups in the order in which their forward passes ended
    """

    def __init__(self, tape: Tape, model: Module, policy: FsdpPolicy) -> None:
        self.tape, self.policy = tape, policy
        self.last_gather: Tensor | None = None
        self.gather_after: tuple[int, ...] = ()
        self.copied_out: tuple[int, ...] = ()
        self.reduced: list[tuple[Tensor, int]] = []
        self.order: list[ShardedGroup] = []
        self.is_ending = False
        model.name_scopes()
        if policy.own_dtype:
            _cast_buffers(tape, model, policy.own_dtype)
        rest = {id(one): one for one in model.parameters()}
        of_block = [
            (block, [rest.pop(id(one)) for one in block.parameters() if id(one) in rest])
            for _, block in blocks_of(model)
        ]
        owners = owners_of(model)
        groups = [ShardedGroup(self, block, self._divided(parameters, owners)) for block, parameters in of_block]
        root = ShardedGroup(self, model, self._divided(list(rest.values()), owners), is_root=True)
        for index, group in enumerate(groups):
            if policy.gather_ahead is not None:
                group.ahead = groups[index + 1 : index + 1 + policy.gather_ahead]
                group.behind = groups[max(0, index - policy.gather_ahead) : index][::-1]
        self.groups = [root, *groups]

    def _divided(
        self, parameters: list[Parameter], owners: dict[int, list[tuple[Module, str]]]
    ) -> list[ShardedParameter]:
        policy, divided = self.policy, []
        for one in parameters:
            own = policy.own_dtype if policy.own_dtype and one.requires_grad else one.dtype
            gathered = policy.param_dtype if policy.param_dtype and one.dtype.is_floating_point else one.dtype
            divided.append(ShardedParameter(self.tape, one, owners[id(one)], policy.gpus, own, gathered))
        return divided

    def finish(self) -> None:
        """What PyTorch calls at the end of the backward pass."""
        for group in self.groups:
            if group.state != "post_backward":
                group.post_backward()
            group.state = "idle"
            group.gathered = None
            group.indices.clear()
        self.order.clear()
        self.wait_for_reduced(0)
        self.is_ending = False

    def wait_for_reduced(self, most: int) -> None:
        """Give back the buffers of reduce-scatters but the last ones, when these are done."""
        while len(self.reduced) > most:
            buffer, scattered = self.reduced.pop(0)
            self.tape.launch("wait", (buffer,), (), after=(scattered,))


def _cast_buffers(tape: Tape, model: Module, dtype: DType) -> None:
    """Give a model the buffers that it is built with in another format; the policy casts weights alone."""
    for _, module in model.named_modules():
        for name, one in list(vars(module).items()):
            if isinstance(one, Tensor) and one.storage.record.kind == "buffer" and one.dtype.is_floating_point:
                setattr(module, name, tape.buffer(one.shape, dtype, name))


class ShardedGroup(ModuleHooks):
    """Weights that are gathered together: those of a block, or those outside of all blocks.

    Attributes
    ----------
    gathered : buffer of an all-gather whose weights aren't copied out yet
    indices : where the group is in the order of forward passes
    ahead, behind : groups that are gathered ahead, where the policy says how many
    """

    def __init__(
        self, sharding: FullySharded, module: Module, parameters: list[ShardedParameter], *, is_root: bool = False
    ) -> None:
        self.sharding, self.module, self.parameters = sharding, module, parameters
        self.is_root, self.is_sharded = is_root, True
        self.reshards = sharding.policy.reshard_after_forward and not is_root
        self.state: _State = "idle"
        self.gathered: Tensor | None = None
        self.indices: list[int] = []
        self.ahead: list[ShardedGroup] = []
        self.behind: list[ShardedGroup] = []
        module.add_hooks(self)

    @property
    def tape(self) -> Tape:
        return self.sharding.tape

    # Forward.

    def before_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self.state == "pre_backward":  # computed again for the backward pass: gathered already
            return self._cast_inputs(args, kwargs)
        args, kwargs = self._cast_inputs(args, kwargs)
        self.state = "forward"
        self.unshard()
        self.wait_for_unshard()
        args, kwargs = self._register_post_backward(args, kwargs)
        for group in self.ahead:
            group.unshard()
        return args, kwargs

    def after_forward(self, output: Any) -> Any:
        if self.state == "pre_backward":
            return output
        if self.reshards:
            self.reshard()
        self.indices.append(len(self.sharding.order))
        self.sharding.order.append(self)
        for tensor in with_gradient(output):
            if tensor.node is not None:
                tensor.node.hooks = [*(tensor.node.hooks or ()), self.pre_backward]
        self.state = "idle"
        if self.is_root:
            self.sharding.last_gather = None
        return output

    def _cast_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        dtype = self.sharding.policy.param_dtype
        if dtype is None:
            return args, kwargs
        return replaced(args, kwargs, lambda one: one.to(dtype) if one.dtype.is_floating_point else one)

    def _register_post_backward(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        tensors = list(with_gradient((args, kwargs)))
        if not tensors:
            return args, kwargs
        outputs = iter(behind("RegisterPostBackwardFunctionBackward", self.post_backward, tensors))
        del tensors
        return replaced(args, kwargs, lambda one: next(outputs) if one.records else one)

    # Gathering.

    def unshard(self) -> None:
        """Begin the all-gather, unless it has begun."""
        if self.gathered is not None or not self.is_sharded or not self.parameters:
            return
        tape, gpus = self.tape, self.sharding.policy.gpus
        with tape.in_scope(self.module.path):
            if gpus == 1:
                self.gathered = tape.empty((0,), self.parameters[0].dtype, "empty", kind="gathered")
                return
            inputs = self._inputs()
            mixed = len({one.dtype for one in inputs}) > 1
            elements = sum(prod(one.shape) * (one.dtype.size if mixed else 1) for one in inputs)
            dtype = uint8 if mixed else inputs[0].dtype
            output = tape.empty((elements * gpus,), dtype, "all_gather_copy_in", kind="gathered")
            tape.launch("all_gather_copy_in", inputs, (output,), stream="gather", after=self.sharding.gather_after)
            del inputs
            collective = Collective("all_gather", elements * gpus * dtype.size, gpus)
            tape.launch("all_gather", (output,), (output,), stream="gather", collective=collective)
            self.gathered = output

    def _inputs(self) -> list[Tensor]:
        """The parts of this GPU, those that the policy casts in one tensor."""
        cast = [one for one in self.parameters if one.casts]
        inputs = [one.padded for one in self.parameters if not one.casts]
        if cast:
            elements = sum(prod(one.padded.shape) for one in cast)
            flat = self.tape.empty((elements,), cast[0].dtype, "_foreach_copy_", kind="gathered")
            self.tape.launch("_foreach_copy_", [one.padded for one in cast], (flat,), stream="gather")
            inputs.append(flat)
        return inputs

    def wait_for_unshard(self) -> None:
        """Copy the weights out of the buffer."""
        if self.gathered is None:
            return
        tape, sharding = self.tape, self.sharding
        previous = sharding.last_gather if self.state == "forward" else None
        if self.state == "forward":
            sharding.gather_after = sharding.copied_out
        with tape.in_scope(self.module.path):
            if sharding.policy.gpus == 1:
                for one in self.parameters:
                    source = one.padded.detach().to(one.dtype)
                    one.full.storage.restore()
                    tape.launch("copy_", (source,), (one.full,))
            else:
                for one in self.parameters:
                    one.full.storage.restore()
                tape.launch("split_with_sizes_copy", (self.gathered,), [one.full for one in self.parameters])
                copied_out = (len(tape.operations) - 1,)
                if self.state == "forward":
                    sharding.last_gather, sharding.copied_out = self.gathered, copied_out
                else:
                    sharding.gather_after = copied_out
        for one in self.parameters:
            one.show(one.full)
        self.is_sharded = False
        self.gathered = None
        del previous  # PyTorch's code refers to the buffer before in a local variable until here

    def reshard(self) -> None:
        """Give the weights back."""
        if not self.is_sharded:
            for one in self.parameters:
                one.show(one.shard)
                one.full.storage.release()
            self.is_sharded = True

    # Backward.

    def pre_backward(self) -> None:
        """Gather the weights, and those of the block that comes next."""
        sharding = self.sharding
        if not sharding.is_ending:
            sharding.is_ending = True
            self.tape.after_backward.append(sharding.finish)
        if self.state == "pre_backward":
            return
        self.state = "pre_backward"
        self.unshard()
        self.wait_for_unshard()
        for group in self.behind:
            group.unshard()
        if not self.behind and self.indices:
            index = self.indices.pop()
            if index > 0:
                sharding.order[index - 1].unshard()

    def post_backward(self) -> None:
        """Give the weights back, and reduce their gradients to this GPU's parts."""
        self.state = "post_backward"
        trained = [one for one in self.parameters if one.full.grad is not None]
        gradients = [one.full.grad for one in trained]
        for one in trained:
            one.full.grad = None
        with self.tape.in_scope(self.module.path):
            self.reshard()
            self.sharding.wait_for_reduced(0)
            if trained:
                self._reduce(trained, gradients)  # type: ignore[arg-type]

    def _reduce(self, parameters: list[ShardedParameter], gradients: list[Tensor]) -> None:
        """Reduce gradients, which the list alone refers to, so that they end when they are copied.

        The last one ends with the function: in PyTorch's `foreach_reduce`, the variable of a loop refers to it, where
        there is more than one GPU.
        """
        tape, policy = self.tape, self.sharding.policy
        dtype = policy.reduce_dtype or gradients[0].dtype
        elements = sum(one.padded_elements for one in parameters)
        buffer = tape.empty((elements,), dtype, "chunk_cat", kind="bucket")
        tape.launch("chunk_cat", gradients, (buffer,))
        last = gradients[-1] if policy.gpus > 1 else None
        gradients.clear()
        result = tape.empty((elements // policy.gpus,), dtype, "reduce_scatter", kind="gradient")
        if policy.gpus == 1:
            tape.launch("copy_", (buffer,), (result,), stream="reduce")
        else:
            collective = Collective("reduce_scatter", elements * dtype.size, policy.gpus)
            tape.launch("reduce_scatter", (buffer,), (result,), stream="reduce", collective=collective)
        scattered = len(tape.operations) - 1
        own = parameters[0].shard.dtype
        if dtype is not own:
            reduced, result = result, tape.empty(result.shape, own, "_to_copy", kind="gradient")
            tape.launch("_to_copy", (reduced,), (result,), stream="reduce")
            del reduced
        self._give(parameters, result)
        del last
        self.sharding.reduced.append((buffer, scattered))

    def _give(self, parameters: list[ShardedParameter], result: Tensor) -> None:
        offset = 0
        for one in parameters:
            shape = one.shard.shape
            part = Tensor(shape, contiguous_strides(shape), offset, result.dtype, result.storage, "as_strided")
            offset += one.padded_elements // self.sharding.policy.gpus
            if one.shard.grad is None:
                one.shard.grad = part
            else:
                self.tape.launch("add_", (one.shard.grad, part), (one.shard.grad,), stream="reduce")
