"""Hooks that run when a weight's gradient is complete (``register_post_accumulate_grad_hook``).

The backward pass of a compiled region is one node of the graph, which hands out all gradients when it ends. So hooks of
its weights run then, in the order in which the gradients were computed; those of eager code run at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from buddysim.training.autograd.tensor import Tensor

if TYPE_CHECKING:
    from buddysim.training.step.training_step import TrainingStep

GradientHook = Callable[[Tensor], None]


class GradientHooks:
    """The hooks of a step's weights.

    Attributes
    ----------
    waiting : weights whose gradients a region has computed, with their hooks
    region : that region, by its scope
    """

    def __init__(self, step: TrainingStep) -> None:
        self.tape = step.tape
        self.region_of = step.model.compiled_region if step.options.compile else _eager
        self.waiting: list[tuple[GradientHook, Tensor]] = []
        self.region: str | None = None

    def add(self, weight: Tensor, hook: GradientHook) -> None:
        """Let a hook run for a weight."""
        weight.after_accumulate = lambda arrived: self._arrived(hook, arrived)

    def _arrived(self, hook: GradientHook, weight: Tensor) -> None:
        region = self.region_of(self.tape.scope)
        if region != self.region:
            self._run()
            self.region = region
        if region is None:
            hook(weight)
            return
        if not self.waiting:
            self.tape.after_backward.insert(0, self._run)
        self.waiting.append((hook, weight))

    def _run(self) -> None:
        """Run the hooks of a region that has ended."""
        waiting, self.waiting = self.waiting, []
        for hook, weight in waiting:
            hook(weight)


def _eager(scope: str) -> None:
    """No module is compiled."""
