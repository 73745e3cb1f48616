"""A plan as code that a user pastes next to a PyTorch training: policies of checkpoints, hooks of saved tensors.

The code names blocks by their paths, as the model's own `named_modules` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.fitting.choices import GroupChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buddysim.training.fitting.assignment import Assignment
    from buddysim.training.fitting.plan_space import PlanSpace

#: Of the CPU, for trials there.
_ON_CPU = {"_scaled_dot_product_flash_attention": "_scaled_dot_product_flash_attention_for_cpu"}
_FORMATS = {16: "torch.bfloat16", 8: "torch.float8_e5m2"}

_HEAD = '''"""Plan of `buddysim fit` for {network}, batch {batch}, on {machine}: {placement}.

Call `apply_plan(model)` once, before the first step{then}.
"""

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

aten = torch.ops.aten
'''

_BODY = '''
HOST_BYTES = {}  # copied to the host so far, by block


def apply_plan(model):
    """Change the forward pass of each block that the plan is about."""
    weights = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}
    for path, choice in PLAN.items():
        block, modules, number_format = model.get_submodule(path), choice.get("offload"), choice.get("format")
        if choice.get("recompute"):
            block.forward = _recomputed(block.forward, choice.get("stored", ()), choice.get("every_second", False))
        if modules is not None:
            parts = [block] if not modules else [
                one for name, one in block.named_modules() if name.split(".")[-1] in modules
            ]
            for part in parts:
                part.forward = _saved_with(part.forward, lambda path=path: _offload_hooks(path, weights))
        if number_format is not None:
            block.forward = _saved_with(block.forward, lambda f=number_format: _cast_hooks(f, weights))
    return model


def _recomputed(forward, stored, every_second):
    stored = [getattr(aten, name).default for name in stored if hasattr(aten, name)]

    def contexts():
        count = {False: 0, True: 0}  # products of the first and of the second run

        def decide(ctx, operator, *args, **kwargs):
            stays = operator in stored
            if every_second and operator == aten.mm.default:
                count[ctx.is_recompute] += 1
                stays = count[ctx.is_recompute] % 2 == 1
            return CheckpointPolicy.MUST_SAVE if stays else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(decide)

    def run(*args, **kwargs):
        saved = [n for n, one in enumerate(args) if not n or (isinstance(one, torch.Tensor) and one.requires_grad)]
        others = [None if n in saved else one for n, one in enumerate(args)]  # masks, positions

        def run_again(*inputs):
            every = list(others)
            for n, one in zip(saved, inputs):
                every[n] = one
            return forward(*every, **kwargs)

        options = {"context_fn": contexts} if stored else {}
        return checkpoint(run_again, *(args[n] for n in saved), use_reentrant=False, **options)

    return run


def _saved_with(forward, hooks):
    def run(*args, **kwargs):
        with hooks():
            return forward(*args, **kwargs)

    return run


def _offload_hooks(path, weights):
    """Copies to pinned memory and back, on a stream of their own."""

    def pack(tensor):
        size = tensor.numel() * tensor.element_size()
        if size < 1024 or tensor.untyped_storage().data_ptr() in weights:
            return tensor
        HOST_BYTES[path] = HOST_BYTES.get(path, 0) + size
        if not tensor.is_cuda:
            return tensor.device, tensor.detach().clone(), None
        buffer = torch.empty_like(tensor, device="cpu", pin_memory=True)
        stream = _copies()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            buffer.copy_(tensor.detach(), non_blocking=True)
            done = stream.record_event()
        tensor.record_stream(stream)
        return tensor.device, buffer, done

    def unpack(packed):
        if not isinstance(packed, tuple):
            return packed
        device, buffer, done = packed
        if done is None:
            return buffer
        stream = _copies()
        with torch.cuda.stream(stream):
            stream.wait_event(done)
            tensor = buffer.to(device, non_blocking=True)
        torch.cuda.current_stream().wait_stream(stream)
        tensor.record_stream(torch.cuda.current_stream())
        return tensor

    return saved_tensors_hooks(pack, unpack)


def _cast_hooks(number_format, weights):
    def pack(tensor):
        narrow = number_format.itemsize
        if not tensor.is_floating_point() or tensor.element_size() <= narrow:
            return tensor
        return tensor if tensor.untyped_storage().data_ptr() in weights else (tensor.dtype, tensor.to(number_format))

    def unpack(packed):
        return packed[1].to(packed[0]) if isinstance(packed, tuple) else packed

    return saved_tensors_hooks(pack, unpack)


_STREAM = []


def _copies():
    if not _STREAM:
        _STREAM.append(torch.cuda.Stream())
    return _STREAM[0]
'''

_OPTIMIZER = '''

def make_optimizer(model, optimizer=torch.optim.AdamW, **options):
    """The optimizer on the host (torchao)."""
    from torchao.optim import CPUOffloadOptimizer

    return CPUOffloadOptimizer(model.parameters(), optimizer, offload_gradients=True, **options)
'''

_WEIGHTS = '''

def shard_to_host(model):
    """Weights on the host, fetched block by block (FSDP2, also on one GPU); make the optimizer behind it."""
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    for path in BLOCKS:
        fully_shard(model.get_submodule(path), offload_policy=CPUOffloadPolicy())
    return fully_shard(model, offload_policy=CPUOffloadPolicy())
'''


def policy_text(space: PlanSpace, assignment: Assignment | None) -> str:
    """Return a plan of blocks as a file of Python.

    Parameters
    ----------
    assignment : None where a single scheme's own plan is the best one

    Raises
    ------
    BuddysimError
        what PyTorch has no code for: other networks than models of a configuration, 10 bits, a late optimizer
    """
    if assignment is None:
        raise BuddysimError("the best plan is a single scheme's: expected its name with train, or a plan as .toml")
    placement = space.placements[assignment.placement]
    if space.blocks is None:
        raise BuddysimError(f"{space.network.name} isn't a model's configuration: expected a plan as .toml")
    if placement.optimizer is not None and placement.optimizer.delayed:
        raise BuddysimError(f"{placement.name}: no library has it: expected a plan as .toml")
    choices = [space.choices[one] for one in assignment.choices]
    then = ", and `make_optimizer` in place of the optimizer" if placement.optimizer else ""
    if placement.weights is not None:
        then = ", and `shard_to_host(model)` behind it"
    head = _HEAD.format(
        network=space.network.name, batch=space.batch, machine=space.machine.name, placement=placement.name, then=then
    )
    return "".join([
        head,
        f"BLOCKS = {_listed(space.blocks)}\n",
        f"PLAN = {_listed(_lines(space.blocks, choices), '{}')}\n",
        _BODY,
        _OPTIMIZER if placement.optimizer is not None and placement.weights is None else "",
        _WEIGHTS if placement.weights is not None else "",
    ])  # fmt: skip


def _lines(blocks: Sequence[str], choices: Sequence[GroupChoice]) -> list[str]:
    """The choices of all blocks but those that keep what they save."""
    lines = []
    for block, choice in zip(blocks, choices, strict=True):
        parts = _parts(choice)
        if parts:
            lines.append(f'"{block}": {{{", ".join(parts)}}}')
    return lines


def _parts(choice: GroupChoice) -> list[str]:
    parts = []
    if choice.recomputes:
        parts.append('"recompute": True')
    if choice.stored is not None:
        names = [name for one in choice.stored.names for name in (one, *([_ON_CPU[one]] if one in _ON_CPU else []))]
        parts.append(f'"stored": {names!r}'.replace("'", '"'))
        if choice.stored.every_second_product:
            parts.append('"every_second": True')
    if choice.offloads is not None:
        parts.append(f'"offload": {list(choice.offloads)!r}'.replace("'", '"'))
    if choice.bits is not None:
        if choice.bits not in _FORMATS:
            raise BuddysimError(f"{choice.name}: PyTorch has no number format of {choice.bits} bits: expected 16 or 8")
        parts.append(f'"format": {_FORMATS[choice.bits]}')
    return parts


def _listed(items: Sequence[str], around: str = "[]") -> str:
    """A list, or a dictionary, with a line for each item."""
    shown = items if around == "{}" else [f'"{one}"' for one in items]
    return "\n".join([around[0], *(f"    {one}," for one in shown), around[1]])
