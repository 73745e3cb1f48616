"""A training step of a module, run by PyTorch itself by CUDA's rules, without data.

Autograd, autocast and the order of backward are PyTorch's own, so any module that runs is read, and what it saves is
what PyTorch saves. ``torch.export`` and ``torch.fx`` were weighed: both give a graph from which saved tensors and
lifetimes would have to be derived again, and both refuse modules that eager PyTorch runs.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Literal

import torch

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.training.autograd.tape import Tape
from buddysim.training.networks.from_torch.below_autograd import below_autograd
from buddysim.training.networks.from_torch.cuda_rules import Attention, cuda_rules
from buddysim.training.networks.from_torch.cuda_rules.signatures import SIGNATURES
from buddysim.training.networks.from_torch.step_recorder import StepRecorder
from buddysim.training.networks.from_torch.untouched_memory import UntouchedMemory
from buddysim.training.networks.from_torch.without_data import MAX_COMPUTED, WithoutData

Recipe = Literal["fp32", "amp-bf16", "bf16"]

#: What a module's forward method takes, by position or by name: tensors, and switches.
Inputs = Sequence[Any] | Mapping[str, Any]


def trace_step(
    module: torch.nn.Module,
    inputs: Inputs,
    recipe: Recipe = "fp32",
    attention: Attention = "flash",
    loss: Callable[[Any], torch.Tensor] | None = None,
    optimizer: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer] | None = None,
    steps: int = 1,
    steady: bool = False,
) -> Tape:
    """Training steps of a module, as PyTorch runs them on a CUDA GPU: forward, loss, backward, optimizer.

    Parameters
    ----------
    module : unchanged; on the CPU or on the ``meta`` device
    inputs : their values are not read
    recipe : ``"bf16"`` and ``"amp-bf16"``: weights in bf16; fp32 weights under autocast
    loss : from the module's output to a number; None: its ``loss``, or the sum of a tensor
    optimizer : makes one: ``lambda parameters: AdamW(parameters, foreach=True)``, the variant that a GPU takes by
        itself; gradients are dropped before a step. None: gradients stay
    steps : the first one also makes the optimizer's state
    steady : the optimizer's state is there before the first step; gradients are dropped behind the last one

    Raises
    ------
    BuddysimError
        a module that doesn't run on these inputs, or whose operations depend on values
    """
    name = type(module).__name__
    tape, memory = Tape(), UntouchedMemory()
    recorder = StepRecorder(tape, memory)
    half = torch.bfloat16 if recipe == "bf16" else None
    copied = _copied(module, recorder, half)
    arguments, keywords = _inputs(inputs, recorder, half)
    try:
        with ExitStack() as stack:
            stack.enter_context(quiet())
            stack.enter_context(cuda_rules(attention, kernels=False))
            stack.enter_context(below_autograd(WithoutData(memory, SIGNATURES)))
            trained = [one for one in copied.parameters() if one.requires_grad]
            stepper = optimizer(trained) if optimizer is not None else None
            if stepper is not None and steady:
                _make_state(stepper, trained, recorder)
            stack.enter_context(below_autograd(recorder))
            stack.enter_context(recorder.watching(copied))
            stack.enter_context(tape)
            for _ in range(steps):
                if stepper is not None:
                    stepper.zero_grad()
                with torch.autograd.graph.saved_tensors_hooks(recorder.pack, recorder.unpack), _autocast(recipe):
                    result = (loss or _loss_of)(copied(*arguments, **keywords))
                recorder.note_saved(result)
                result.backward()
                recorder.note_gradients()
                del result
                if stepper is not None:
                    with recorder.optimizing():
                        stepper.step()
                    recorder.note_state(stepper)
            if steady:
                copied.zero_grad()
    except BuddysimError as error:
        raise BuddysimError(f"{name}: {error}") from None
    except Exception as error:
        reason = shortened(" ".join(str(error).split()), 200)[1:-1] or type(error).__name__
        raise BuddysimError(f"{name}: the module doesn't run on these inputs: {reason}") from None
    return tape


def _make_state(
    optimizer: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter], recorder: StepRecorder
) -> None:
    """Makes an optimizer's state by a step that isn't recorded."""
    with recorder.paused():
        for parameter in parameters:
            parameter.grad = torch.empty_like(parameter)
        optimizer.step()
        optimizer.zero_grad()
    for state in optimizer.state.values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                recorder.hold(value, "optimizer", key)


def _autocast(recipe: Recipe) -> AbstractContextManager[Any]:
    return torch.autocast("cpu", torch.bfloat16) if recipe == "amp-bf16" else nullcontext()


def _copied(module: torch.nn.Module, recorder: StepRecorder, half: torch.dtype | None) -> torch.nn.Module:
    """A copy in training mode on the CPU, without weights; shared parameters stay shared, small buffers keep values."""
    copies: dict[int, Any] = {}
    for name, parameter in module.named_parameters():
        with recorder.setup("parameter", name):
            copies[id(parameter)] = torch.nn.Parameter(_like(parameter, recorder, half), parameter.requires_grad)
    for name, buffer in module.named_buffers():
        with recorder.setup("buffer", name):
            copies[id(buffer)] = _like(buffer, recorder, half, buffer.numel() <= MAX_COMPUTED)
    return copy.deepcopy(module, copies).train()


def _inputs(inputs: Inputs, recorder: StepRecorder, half: torch.dtype | None) -> tuple[list[Any], dict[str, Any]]:
    def copied(name: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        with recorder.setup("input", name):
            return _like(value, recorder, half, not value.is_floating_point())

    if isinstance(inputs, Mapping):
        return [], {name: copied(name, one) for name, one in inputs.items()}
    return [copied(str(number), one) for number, one in enumerate(inputs)], {}


def _like(
    tensor: torch.Tensor, recorder: StepRecorder, half: torch.dtype | None, with_values: bool = False
) -> torch.Tensor:
    dtype = half if half is not None and tensor.is_floating_point() else tensor.dtype
    if with_values and tensor.device.type == "cpu":
        return recorder.memory.copied(tensor.detach().to(dtype))
    return recorder.memory.allocate(tuple(tensor.shape), tensor.stride(), dtype)


def _loss_of(output: Any) -> torch.Tensor:
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", output)
    if isinstance(loss, tuple | list) and loss:
        loss = loss[0]
    if not isinstance(loss, torch.Tensor):
        raise BuddysimError(f"the module returns {type(output).__name__}: expected a loss or a tensor, or give loss=")
    if loss.grad_fn is None:
        raise BuddysimError("nothing is trained: no weight that requires a gradient leads to the module's output")
    return loss if loss.dim() == 0 else loss.sum()


@contextmanager
def quiet() -> Iterator[None]:
    """Context without PyTorch's reports of what this module reports itself."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    disabled, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.disabled = disabled
