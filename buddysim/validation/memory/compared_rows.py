"""Each published row next to its simulation, or with the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from buddysim.training.architectures.read_config import read_config
from buddysim.training.caching_allocator import replay_tape
from buddysim.training.options.checkpoint_rule import checkpoint_rules
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.recipes import REGISTRY as RECIPES
from buddysim.training.recorded_step.run import record_step
from buddysim.validation.memory.layer_script import MIB, peak_bytes, workspace_bytes
from buddysim.validation.memory.layers import REGISTRY
from buddysim.validation.memory.measured_rows import MeasuredLayer, MeasuredTraining, layer_rows, training_rows
from buddysim.validation.memory.training_settings import TrainingSettings, settings_of


@dataclass(frozen=True)
class ComparedRow:
    """A row of training or of a layer.

    Attributes
    ----------
    subject : the row's name
    group : source, or script and provider
    printed : the printed figure in its unit, as text
    kind : of memory, as the source says
    simulated, measured : in `unit`; None where nothing is simulated, or where the figure's unit isn't stated
    unit : GiB, GB or MiB
    is_usable : whether a tolerance holds
    reason : why nothing is simulated, or what the source leaves open
    """

    subject: str
    group: str
    printed: str
    kind: str
    simulated: float | None
    measured: float | None
    unit: str
    is_usable: bool
    reason: str

    @property
    def error(self) -> float | None:
        """Signed, relative to the measured figure."""
        if self.simulated is None or self.measured is None:
            return None
        return self.simulated / self.measured - 1


def compared_trainings(progress: Callable[[str], None]) -> Iterator[ComparedRow]:
    """Yield every row with a memory figure."""
    for row in training_rows():
        settings = settings_of(row)
        simulated, measured, unit, reason = None, row.printed_gib, "GiB", row.cells["reason"]
        if isinstance(settings, TrainingSettings):
            simulated, unit = _peak(row, settings) / settings.unit, settings.unit_name
            if settings.unit_name == "GB":
                measured = float(row.cells["memory_as_printed"].split()[0])
            progress(f"{row.id}: {simulated:.2f} {unit}")
        else:
            reason = settings
        yield ComparedRow(
            row.id, row.source_set, row.cells["memory_as_printed"], row.cells["memory_kind"], simulated, measured, unit,
            row.is_usable, reason,
        )  # fmt: skip


def _peak(row: MeasuredTraining, settings: TrainingSettings) -> int:
    """The peak of a steady iteration: of active bytes where the source prints those, else of allocated ones."""
    config, options = read_config(settings.config), ConfigOptions(**settings.options)
    recipe = RECIPES.find(str(options.recipe))
    blocks = config.keys.num_hidden_layers  # type: ignore[attr-defined]
    saving = SavingRules(
        checkpoint_rules("block", blocks) if settings.checkpoints else (),
        OffloadRule() if settings.offloads else None,
    )
    tape = record_step(config, options, recipe, settings.batch, settings.optimizer, saving=saving)
    replay = replay_tape(tape, workspace=workspace_bytes("A100"))
    is_active = row.cells["memory_kind"].startswith("active")
    return replay.peak_active_bytes if is_active else replay.peak_allocated_bytes


def compared_layers(progress: Callable[[str], None]) -> Iterator[ComparedRow]:
    """Yield every peak of a layer."""
    for row in layer_rows():
        script = REGISTRY.find(row.kernel) if row.kernel in REGISTRY else None
        reason = _NOT_SIMULATED.get(row.kernel, "")
        simulated = None
        if script is not None and row.provider in script.SETUPS:
            config = {**row.config, row.name: row.value, "version": row.version}
            simulated = peak_bytes(script.SETUPS[row.provider], config, row.mode, row.gpu) / MIB
        elif not reason:
            reason = f"{row.provider}'s kernel is not simulated"
        yield ComparedRow(
            _layer_name(row), f"{row.kernel} {row.provider}", f"{row.peak_mib:g} MB", "allocated", simulated,
            row.peak_mib, "MiB", simulated is not None, reason,
        )  # fmt: skip
    progress(f"{len(layer_rows())} peaks of layers")


def _layer_name(row: MeasuredLayer) -> str:
    others = row.config.get("D") or row.config.get("dtype", "").removeprefix("torch.")
    return f"{row.kernel} {row.provider} {row.mode} {row.name}={row.value} {others} {row.version}".replace("  ", " ")


_NOT_SIMULATED = {
    "embedding": "12 to 14 GiB of an earlier benchmark in the same process are within the figure",
    "fused_moe": "how many tokens each expert gets decides, which the script draws at random",
}
