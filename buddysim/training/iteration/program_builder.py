"""A program while it is made: steps, tasks, and who uses which data structure when.

Structures (`Structure`) are noted with each step that defines, reads or writes them. Lives follow from these uses: a
tensor is allocated at the step that defines it (computed, decoded, prefetched, recomputed) and released with
the last step that uses it before it is defined anew, or for good. So nothing can be released too early.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from buddysim.training.iteration.program import (
    CopyTiming,
    Pass,
    Program,
    ProgramTensor,
    QueuedTask,
    Step,
    Stream,
    TensorKind,
)
from buddysim.training.networks.graph import Layer

#: A data structure through all its lives: ``"y"``, ``"dy"``, ``"saved"``, ``"code"`` (of Y), ``"dw"`` (gradient of a
#: recorded network's weights), ``"update"`` (temporaries of its update), ``"w"`` (weights that are on the GPU for a
#: while), and its layer.
Structure = tuple[str, int]

_in_order = itemgetter(0, 1)  # of uses: by step, that which defines first

_KINDS: dict[str, TensorKind] = {
    "y": "feature_maps",
    "dy": "gradient_maps",
    "saved": "feature_maps",
    "code": "encoded_maps",
    "dw": "weight_gradients",
    "update": "temporaries",
    "w": "weights",
}


class _Use(NamedTuple):
    """In a step, that which defines comes first."""

    step: int
    reads: bool
    writes: bool


class _StructureUses(NamedTuple):
    """A structure: the layer that owns it, its bytes, its uses."""

    owner: Layer
    byte_count: int
    uses: list[_Use]


@dataclass
class StepBuilder:
    """A step while its tasks and tensors are still being added; the attributes are those of `Step`."""

    index: int
    layer: int
    pass_: Pass
    compute_ps: int
    part: str
    workspace_bytes: int
    tasks: list[int] = field(default_factory=list)
    allocate: list[int] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    workspace: int | None = None

    def step(self) -> Step:
        """Return the step with its current content."""
        return Step(
            self.index,
            self.layer,
            self.pass_,
            self.compute_ps,
            self.part,
            self.workspace_bytes,
            tuple(self.tasks),
            tuple(self.allocate),
            tuple(self.release),
            tuple(self.reads),
            tuple(self.writes),
            self.workspace,
        )


class ProgramBuilder:
    """The steps, tensors and tasks of a program so far.

    Parameters
    ----------
    workspace_kind : of what lives during one step alone
    """

    def __init__(self, workspace_kind: TensorKind = "workspace") -> None:
        self.workspace_kind = workspace_kind
        self.steps: list[StepBuilder] = []
        self.tensors: list[ProgramTensor] = []
        self.tasks: list[QueuedTask] = []
        self.resident: list[int] = []
        self._noted: dict[Structure, _StructureUses] = {}
        self._copied: dict[Structure, dict[int, int]] = {}  # by step of launch: the task
        self._passing: list[tuple[StepBuilder, int, TensorKind]] = []  # a task whose tensor lives for this step only

    def program(self) -> Program:
        """The program, finished."""
        steps = tuple(draft.step() for draft in self.steps)
        return Program(steps, tuple(self.tensors), tuple(self.tasks), tuple(self.resident))

    def step(self, layer: Layer, pass_: Pass, compute_ps: int, workspace_bytes: int = 0) -> StepBuilder:
        """One more step."""
        step = StepBuilder(len(self.steps), layer.index, pass_, compute_ps, layer.part, workspace_bytes)
        self.steps.append(step)
        return step

    def tensor(self, layer: Layer, kind: TensorKind, byte_count: int) -> int:
        """One more tensor."""
        return self._made(layer.index, kind, byte_count, layer.part)

    def _made(self, layer: int, kind: TensorKind, byte_count: int, part: str) -> int:
        number = len(self.tensors)
        self.tensors.append(ProgramTensor(number, layer, kind, byte_count, part))
        return number

    def keep(self, layer: Layer, kind: TensorKind, byte_count: int) -> int:
        """Add a tensor that is live throughout."""
        self.resident.append(self.tensor(layer, kind, byte_count))
        return self.resident[-1]

    def task(
        self, step: StepBuilder, stream: Stream, layer: int, timing: CopyTiming, byte_count: int, moved_bytes: int,
        duration_ps: int, until: int, *, after: tuple[int, ...] = (), pins: int = 0, unpins: int = 0,
    ) -> int:  # fmt: skip
        """One more task, launched by `step`."""
        number = len(self.tasks)
        self.tasks.append(
            QueuedTask(
                number, stream, layer, -1, timing, byte_count, moved_bytes, duration_ps, until, after, pins, unpins
            )
        )
        step.tasks.append(number)
        return number

    def use(
        self,
        step: StepBuilder,
        name: str,
        owner: Layer,
        byte_count: int,
        *,
        defines: bool = False,
        writes: bool = False,
    ) -> None:
        """Notes that a step uses a structure."""
        noted = self._noted.get((name, owner.index))
        if noted is None:
            noted = self._noted[name, owner.index] = _StructureUses(owner, byte_count, [])
        noted.uses.append(_Use(step.index, not defines, defines or writes))

    def copies(self, step: StepBuilder, name: str, owner: int, task: int) -> None:
        """Notes that a task of a step copies a structure which the step uses."""
        self._copied.setdefault((name, owner), {})[step.index] = task

    def passes(self, step: StepBuilder, task: int, kind: TensorKind) -> None:
        """Notes that a task copies a tensor that lives for this step only."""
        self._passing.append((step, task, kind))

    def used(self, name: str, owner: int) -> bool:
        """Whether a step uses a structure."""
        return (name, owner) in self._noted

    def first_use(self, name: str, owner: int, since: int) -> int:
        """The first step from `since` on that uses a structure."""
        return min(use.step for use in self._noted[name, owner].uses if use.step >= since)

    def settle_lives(self) -> None:
        """Makes tensors of all that is noted."""
        for step in self.steps:
            if step.workspace_bytes:
                step.workspace = self._made(step.layer, self.workspace_kind, step.workspace_bytes, step.part)
        for structure, noted in self._noted.items():
            life: list[_Use] = []
            for use in sorted(noted.uses, key=_in_order):
                if not use.reads and life and life[-1].step != use.step:
                    self._live(structure, noted, life)
                    life = []
                life.append(use)
            self._live(structure, noted, life)
        for step, task, kind in self._passing:
            tensor = self._made(step.layer, kind, self.tasks[task].byte_count, step.part)
            self.tasks[task] = self.tasks[task]._replace(tensor=tensor)
            step.allocate.insert(0, tensor)
            step.release.append(tensor)
            step.reads.append(tensor)
        for step in self.steps:
            later = {self.tasks[task].tensor for task in step.tasks if self.tasks[task].timing == "overlapped"}
            if later:
                step.allocate.sort(key=lambda tensor: tensor in later)
            if step.workspace is not None:
                step.allocate.append(step.workspace)
                step.release.append(step.workspace)

    def _live(self, structure: Structure, noted: _StructureUses, life: list[_Use]) -> None:
        first, last = self.steps[life[0].step], self.steps[life[-1].step]
        decoded = structure[0] == "y" and first.pass_ == "decode"
        tensor = self.tensor(noted.owner, "decoded_maps" if decoded else _KINDS[structure[0]], noted.byte_count)
        first.allocate.append(tensor)
        last.release.append(tensor)
        copied = self._copied.get(structure)
        for number, _, writes in life:
            step = self.steps[number]
            if copied is not None and number in copied:
                task = self.tasks[copied[number]]
                self.tasks[task.number] = task._replace(tensor=tensor)
                if writes and task.stream == "prefetch":
                    continue  # the copy fills it, not the step
            used = step.writes if writes else step.reads
            if tensor not in used:
                used.append(tensor)
