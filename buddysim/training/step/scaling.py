"""A gradient scaler: the loss is multiplied so that fp16 gradients don't underflow (``torch.amp.GradScaler`` 2.13)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from buddysim.training.autograd.dtypes import DType, float32, float64, int32
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.optimizers.optimizer import Scaling
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.training_step import TrainingStep


class GradientScaling(StepPart):
    """``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``, ``scaler.update()``."""

    def __init__(self) -> None:
        self.scale: Tensor | None = None
        self.growth: Tensor | None = None

    def optimizer_made(self, step: TrainingStep) -> None:
        if step.steady:
            self._made(step.tape)

    def loss(self, step: TrainingStep, loss: Tensor) -> Tensor:
        return loss * self._made(step.tape)

    @contextmanager
    def update(self, step: TrainingStep) -> Iterator[None]:
        """Undo the scaling before the update, or within its kernels where they can; then set the next scale."""
        optimizer = step.optimizer
        if optimizer.optimizer is None:
            yield
            return
        tape, scale, growth = step.tape, self._made(step.tape), self.growth
        assert growth is not None
        if optimizer.optimizer.undoes_scaling(optimizer.variant):
            infinite = _checked(step, _full(tape, float32))
            total, handed = _result(tape, "add", infinite, float32), _result(tape, "mul", scale, float32)
            optimizer.scaling = Scaling(handed, total)
            del total, handed
            yield
            optimizer.scaling = None
        else:
            infinite = _checked(step, self._inverse(tape, scale))
            yield
        tape.launch("_amp_update_scale_", (scale, growth, infinite), (scale, growth))

    def _made(self, tape: Tape) -> Tensor:
        """The scale, made when a loss is scaled first."""
        if self.scale is None:
            self.scale = _full(tape, float32)
            self.growth = _full(tape, int32)
            self.scale.storage.record.kind = self.growth.storage.record.kind = "optimizer"
        return self.scale

    @staticmethod
    def _inverse(tape: Tape, scale: Tensor) -> Tensor:
        """One over the scale, computed in double precision."""
        double = _result(tape, "_to_copy", scale, float64)
        reciprocal = _result(tape, "reciprocal", double, float64)
        del double
        return _result(tape, "_to_copy", reciprocal, float32)


def _full(tape: Tape, dtype: DType) -> Tensor:
    made = tape.empty((), dtype, "full")
    tape.launch("full", (), (made,))
    return made


def _result(tape: Tape, name: str, operand: Tensor, dtype: DType) -> Tensor:
    result = tape.empty((), dtype, name)
    tape.launch(name, (operand,), (result,))
    return result


def _checked(step: TrainingStep, factor: Tensor) -> Tensor:
    """Multiply the gradients of each format by a factor; return whether one is infinite.

    Each device has a copy of the factor and of the result (``_MultiDeviceReplicator``).
    """
    first = _full(step.tape, float32)
    infinite, own = _result(step.tape, "_to_copy", first, float32), _result(step.tape, "_to_copy", factor, float32)
    gradients: dict[DType, list[Tensor]] = {}
    for one in step.optimizer.parameters:
        if one.grad is not None:
            gradients.setdefault(one.grad.dtype, []).append(one.grad)
    for group in gradients.values():
        step.tape.launch("_amp_foreach_non_finite_check_and_unscale_", [*group, own], [*group, infinite])
    return infinite


def scaling(options: ConfigOptions, recipe: Recipe) -> GradientScaling | None:
    """Return the part of a recipe with a scaler."""
    return GradientScaling() if recipe.scaler else None
