"""A network of recorded layers for one batch, with the record itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.training.networks.graph import Network, Shape
from buddysim.training.networks.recorded.captured_step import CapturedStep
from buddysim.training.networks.recorded.layer import RecordedLayer
from buddysim.training.networks.recorded.update import RecordedUpdate, recorded_update
from buddysim.training.networks.recorded.work import OperationWork

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape
    from buddysim.training.networks.recorded.runs import Run
    from buddysim.training.options.saving_rules import SavingRules

#: Records a step by rules of saving.
RecordWith = Callable[["SavingRules"], "RecordedNetwork"]


class RecordedNetwork(Network):
    """The layers of one recorded training step.

    Parameters
    ----------
    tape : the record
    runs : the operations of each layer but the input
    batch : samples of the step
    precision : number format of its matrix products, a name of `cost.precision.PRECISIONS`
    options : what the model's configuration leaves open, by name, for provenance
    parameter_shapes : shape of each weight, by its name in the state dict
    blocks : of the model, that rules of saving name by number
    record_with : records the step again by such rules; None where the model isn't at hand
    captured : the capture of a script; None: of none
    """

    recorded = True

    def __init__(
        self,
        name: str,
        layers: Sequence[RecordedLayer],
        source: str,
        description: str,
        *,
        tape: Tape,
        runs: Sequence[Run],
        batch: int,
        precision: str,
        options: Mapping[str, Any] | None = None,
        parameter_shapes: Mapping[str, Shape] | None = None,
        blocks: int = 0,
        record_with: RecordWith | None = None,
        captured: CapturedStep | None = None,
    ) -> None:
        super().__init__(name, layers, source, description)
        self.tape, self.runs, self.batch, self.precision = tape, tuple(runs), batch, precision
        self.options = dict(options or {})
        self.parameter_shapes = dict(parameter_shapes or {})
        self.blocks, self.record_with = blocks, record_with
        self.captured = captured
        self._update: RecordedUpdate | None = None
        self._recorded: tuple[RecordedLayer, ...] = tuple(layers)

    @property
    def repeated_passes(self) -> int:
        """How often a captured iteration runs its layers forward and backward before the update, each time equally."""
        if self.captured is None:
            return 1
        return max((one.micro_step for one in self.tape.operations), default=0) + 1

    def at(self, batch: int, optimizer: str = "none") -> Network:
        """Return the network itself; it knows no other batch.

        Raises
        ------
        BuddysimError
            for another batch than the recorded one
        """
        if batch != self.batch:
            raise BuddysimError(f"batch {batch}: {self.name} was recorded with batch {self.batch}: expected that one")
        return self

    def with_element_bytes(self, element_bytes: int) -> Network:
        """Return the network itself: its tensors have their own formats."""
        return self

    def output_bytes(self, index: int, batch: int) -> int:
        """Bytes of what later layers read of a layer's output."""
        return self._recorded[index].output_bytes

    def layer_parameter_bytes(self, index: int) -> int:
        """Bytes of a layer's weights and biases, in their formats."""
        return self._recorded[index].weight_bytes

    def parameter_bytes(self) -> int:
        """Bytes of all weights and biases, in their formats."""
        return sum(layer.weight_bytes for layer in self._recorded)

    def layer_state_bytes(self, index: int) -> int:
        """Bytes of the optimizer's state and masters, divided among layers by the bytes of their weights."""
        state = sum(one.bytes for one in self.tape.storages if one.kind in ("optimizer", "master"))
        before = sum(layer.weight_bytes for layer in self._recorded[:index])
        total = max(1, self.parameter_bytes())
        return state * (before + self._recorded[index].weight_bytes) // total - state * before // total

    def layer_work(self, index: int) -> tuple[OperationWork, ...]:
        """Work of a layer's forward operations."""
        return self._recorded[index].forward_work

    def update(self) -> RecordedUpdate:
        """The optimizer's step."""
        if self._update is None:
            self._update = recorded_update(self.tape)
        return self._update

    def has_gradient(self, index: int) -> bool:
        """Whether the backward pass computes a gradient of a layer's output."""
        return self._recorded[index].has_gradient

    def saved_inputs(self, index: int) -> tuple[int, ...]:
        """The layers whose outputs a layer saves."""
        return self._recorded[index].saved_inputs

    def saved_weight_bytes(self, index: int) -> int:
        """Bytes of the parameters and buffers that a layer saves."""
        return self._recorded[index].saved_weight_bytes

    def temporary_bytes(self, index: int, pass_: str) -> int:
        """Peak of what lives during a pass of a layer alone."""
        return self._recorded[index].temporary_bytes(pass_)

    def forward_flops(self, index: int, batch: int) -> int:
        """FLOPs of a layer's forward step."""
        return self._recorded[index].flops
