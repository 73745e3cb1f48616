"""A network of a module that PyTorch runs without data: its layers are recorded operations, as of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.training.networks.from_torch.cuda_rules import Attention
from buddysim.training.networks.from_torch.traced_step import Inputs, Recipe, trace_step
from buddysim.training.networks.graph import Layer, Network, Value
from buddysim.training.networks.recorded.from_tape import network_from_tape
from buddysim.training.networks.recorded.network import RecordedNetwork

#: Shape of one sample; or by the name of an argument its shape, or a tensor of one sample whose type counts.
InputShapes = Sequence[int] | Mapping[str, Sequence[int] | torch.Tensor]

#: As a GPU runs them by default: over the weights of one format at a time.
_OPTIMIZERS: Mapping[str, Callable[..., torch.optim.Optimizer] | None] = {
    "none": None,
    "sgd": partial(torch.optim.SGD, lr=0.1, foreach=True),
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9, foreach=True),
    "adam": partial(torch.optim.Adam, foreach=True),
    "adamw": partial(torch.optim.AdamW, foreach=True),
}
_PRECISIONS: Mapping[Recipe, str] = {"fp32": "fp32", "amp-bf16": "bf16", "bf16": "bf16"}


class TracedNetwork(Network):
    """A PyTorch module.

    Parameters
    ----------
    inputs : of one sample
    name : of the network
    recipe, attention, loss : as for `trace_step`
    """

    recorded = True

    def __init__(
        self,
        module: nn.Module,
        inputs: InputShapes,
        name: str,
        recipe: Recipe = "fp32",
        attention: Attention = "flash",
        loss: Callable[[Any], torch.Tensor] | None = None,
    ) -> None:
        self.module, self.inputs, self.name = module, inputs, name
        self.recipe, self.attention, self.loss = recipe, attention, loss
        self.precision = _PRECISIONS[recipe]
        self.source = "traced from a PyTorch module"
        self.description = type(module).__name__
        self._reads_numbers = any(isinstance(child, nn.Embedding | nn.EmbeddingBag) for child in module.modules())
        self._at: tuple[int, str, RecordedNetwork] | None = None

    @property
    def options(self) -> Mapping[str, Value]:  # type: ignore[override]
        """What a script leaves open, as it is simulated."""
        return {"recipe": self.recipe, "attention": self.attention}

    @property
    def layers(self) -> tuple[Layer, ...]:  # type: ignore[override]
        """The layers of a batch of one sample."""
        return self.at(1).layers

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one sample."""
        first = next(iter(self.inputs.values())) if isinstance(self.inputs, Mapping) else self.inputs
        return tuple(first.shape) if isinstance(first, torch.Tensor) else tuple(first)

    @property
    def parameters(self) -> int:
        """Weights and biases, each once."""
        return sum(one.numel() for one in self.module.parameters())

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each weight by its name in the state dict; one that several modules use by its first name."""
        return {name: tuple(one.shape) for name, one in self.module.named_parameters()}

    def with_element_bytes(self, element_bytes: int) -> Network:
        """Return the network itself: its tensors have their own formats."""
        return self

    def at(self, batch: int, optimizer: str = "none") -> RecordedNetwork:
        """Return the layers of one training step, and its record; the last one is held.

        Raises
        ------
        BuddysimError
            a module that doesn't run on such a batch, or whose operations depend on values; an unknown optimizer
        """
        if optimizer not in _OPTIMIZERS:
            known = f"{', '.join(_OPTIMIZERS)}{hint(optimizer, _OPTIMIZERS)}"
            raise BuddysimError(f"optimizer {shortened(optimizer)}: expected one of {known}")
        if self._at is None or self._at[:2] != (batch, optimizer):
            self._at = None
            self._at = batch, optimizer, self._recorded(batch, optimizer)
        return self._at[2]

    def _recorded(self, batch: int, optimizer: str) -> RecordedNetwork:
        tape = trace_step(
            *(self.module, self._batch(batch), self.recipe, self.attention, self.loss),
            optimizer=_OPTIMIZERS[optimizer],
            steady=True,
        )
        return network_from_tape(
            *(tape, self.name, batch, self.precision, self.source, self.description),
            options=self.options,
            parameter_shapes=self.parameter_shapes(),
        )

    def _batch(self, batch: int) -> Inputs:
        if isinstance(self.inputs, Mapping):
            return {name: self._tensor(one, batch) for name, one in self.inputs.items()}
        return [self._tensor(self.inputs, batch)]

    def _tensor(self, sample: Sequence[int] | torch.Tensor, batch: int) -> torch.Tensor:
        """A batch of one input: of token numbers where its shape alone is known and the module looks tokens up."""
        if isinstance(sample, torch.Tensor):
            return torch.zeros((batch, *sample.shape), dtype=sample.dtype)
        dtype = torch.long if self._reads_numbers else torch.float32
        device = "cpu" if self._reads_numbers else "meta"
        return torch.zeros((batch, *sample), dtype=dtype, device=device)
