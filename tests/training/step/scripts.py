"""Steps as users write them in PyTorch: accumulation, a gradient scaler, masters, the optimizer in backward."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

MakeOptimizer = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]


@dataclass
class PlainScript:
    """Micro-steps, an update, and gradients dropped behind it.

    Attributes
    ----------
    autocast : half precision of products, under autocast
    """

    micro_steps: int = 1
    autocast: torch.dtype | None = None

    def __call__(self, model: torch.nn.Module, batch: dict[str, torch.Tensor], optimizer: Any) -> None:
        for _ in range(self.micro_steps):
            with torch.autocast("cpu", self.autocast) if self.autocast is not None else nullcontext():
                loss = model(**batch).loss
            if self.micro_steps > 1:
                loss = loss / self.micro_steps
            self.backward(loss)
            del loss
        self.update(optimizer)
        model.zero_grad()

    def backward(self, loss: torch.Tensor) -> None:
        """Compute the gradients of a loss."""
        loss.backward()

    def update(self, optimizer: Any) -> None:
        """Update the weights."""
        if optimizer is not None:
            optimizer.step()


class ScaledScript(PlainScript):
    """With a gradient scaler."""

    def __init__(self, micro_steps: int = 1, autocast: torch.dtype | None = None) -> None:
        super().__init__(micro_steps, autocast)
        self.scaler = torch.amp.GradScaler("cpu")

    def backward(self, loss: torch.Tensor) -> None:
        self.scaler.scale(loss).backward()

    def update(self, optimizer: Any) -> None:
        self.scaler.step(optimizer)
        self.scaler.update()


class MasterScript(PlainScript):
    """The optimizer updates fp32 copies of bf16 weights, in the order of Megatron-LM's mixed-precision optimizer.

    Parameters
    ----------
    make_optimizer : of the masters
    """

    def __init__(self, model: torch.nn.Module, make_optimizer: MakeOptimizer, micro_steps: int = 1) -> None:
        super().__init__(micro_steps)
        self.weights = list(model.parameters())
        self.masters = [torch.nn.Parameter(one.detach().float()) for one in self.weights]
        self.optimizer = make_optimizer(self.masters)

    def update(self, optimizer: Any) -> None:
        for weight, master in zip(self.weights, self.masters, strict=True):
            assert weight.grad is not None
            master.grad = weight.grad.float()
            weight.grad = None
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.masters)
        self.optimizer.zero_grad()


def update_in_backward(model: torch.nn.Module, make_optimizer: MakeOptimizer) -> None:
    """Give each weight an optimizer that runs when its gradient is there."""
    optimizers = {one: make_optimizer([one]) for one in model.parameters()}

    def hook(weight: torch.nn.Parameter) -> None:
        optimizers[weight].step()
        optimizers[weight].zero_grad()

    for one in model.parameters():
        one.register_post_accumulate_grad_hook(hook)  # type: ignore[arg-type]
