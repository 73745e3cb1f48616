"""A training iteration on a tape: N micro-steps of forward and backward, then the optimizer's step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import int64
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.optimizers import find_optimizer
from buddysim.training.optimizers.traced import TracedOptimizer

if TYPE_CHECKING:
    from buddysim.training.architectures.read_config import ReadConfig
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.step.part import StepPart


class TrainingStep:
    """The state of a step while it is recorded.

    Parameters
    ----------
    tape : active; its default type is that of the weights
    parts : what options add, in the order in which they act
    batch : samples of a micro-step
    optimizer : name of an optimizer
    steady : whether the optimizer's state is there before the first iteration

    Attributes
    ----------
    model : with what the parts changed
    micro_steps : of an iteration, before an update
    micro_step, iteration : numbers of what runs, from 0 on
    """

    def __init__(
        self,
        tape: Tape,
        config: ReadConfig,
        options: ConfigOptions,
        parts: Sequence[StepPart],
        batch: int,
        optimizer: str,
        steady: bool = True,
    ) -> None:
        self.tape, self.config, self.options, self.parts, self.batch = tape, config, options, tuple(parts), batch
        self.micro_steps, self.steady = options.accumulation, steady
        self.micro_step = self.iteration = 0
        self.model = config.architecture.model(config.keys, options)
        for part in self.parts:
            part.model_built(self)
        tape.settle()
        parameters = [one for one in self.model.parameters() if one.requires_grad]
        for part in self.parts:
            parameters = list(part.optimized(self, parameters))
        rule = find_optimizer(optimizer)
        variant = rule.find_variant(options.optimizer_variant) if rule is not None else ""
        self.optimizer = TracedOptimizer(rule, variant, parameters)
        for part in self.parts:
            part.optimizer_made(self)
        if steady:
            self.optimizer.make_state()
        self.inputs = {
            name: tape.input(one.shape, int64 if one.dtype == "int64" else tape.default_dtype, name)
            for name, one in self.model.input_shapes(batch).items()
        }

    @property
    def last_micro_step(self) -> bool:
        """Whether the gradients are complete behind this micro-step."""
        return self.micro_step == self.micro_steps - 1

    def run(self) -> None:
        """Record an iteration: a number of micro-steps, and an update.

        The micro-steps between the first and the last one are equal: one of them is recorded, and its operations say
        how often they run (`TracedOperation.times`).
        """
        last = self.micro_steps - 1
        for number in sorted({0, min(1, last), last}):
            self.micro_step = self.tape.micro_step = number
            self.tape.times = last - 1 if 0 < number < last else 1
            self._run_micro_step()
        with self.tape.in_phase("optimizer"), self._around(lambda part: part.update(self)):
            self.optimizer.step()
        self.model.zero_grad()
        for part in self.parts:
            part.zero_grad(self)
        self.iteration += 1

    def _run_micro_step(self) -> None:
        with self.tape.in_phase("forward"):
            with self._around(lambda part: part.forward(self)):
                loss: Tensor = self.model(**self.inputs)
            if self.micro_steps > 1:
                loss = loss / self.micro_steps  # the sum of the gradients is that of the mean over all samples
            root = loss
            for part in self.parts:
                root = part.loss(self, root)
        with self._around(lambda part: part.backward(self)):
            root.backward()

    def _around(self, context: Callable[[StepPart], AbstractContextManager[object]]) -> ExitStack:
        """The contexts of all parts, entered."""
        with ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(context(part))
            return stack.pop_all()
