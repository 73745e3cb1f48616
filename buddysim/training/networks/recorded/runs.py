"""Divides the operations of a recorded step into runs: consecutive forward operations of one module.

A run is a layer. A module whose operations alternate with those of its children has several runs, as a decoder layer
whose two additions stand around its feed-forward part. A backward operation belongs to the run whose forward operation
it differentiates: of its module's runs the last one that lies not behind the runs that the backward pass has reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from buddysim.training.autograd.records import TracedOperation
from buddysim.training.autograd.tape import Tape


@dataclass
class Run:
    """Operations of one layer.

    Attributes
    ----------
    name : the module's name, with a number from its second run on
    forward, backward : of the first micro-step
    recomputed : forward operations that the backward pass repeats
    later : of the other micro-steps
    """

    index: int
    scope: str
    name: str
    forward: list[TracedOperation] = field(default_factory=list)
    backward: list[TracedOperation] = field(default_factory=list)
    recomputed: list[TracedOperation] = field(default_factory=list)
    later: list[TracedOperation] = field(default_factory=list)

    @property
    def operations(self) -> list[TracedOperation]:
        """All operations, of all micro-steps."""
        return [*self.forward, *self.recomputed, *self.backward, *self.later]


def runs_of(tape: Tape) -> list[Run]:
    """Return the runs of a tape, in the order in which they run forward; those of all micro-steps are the same."""
    steps: dict[int, list[TracedOperation]] = {}
    for operation in tape.operations:
        steps.setdefault(operation.micro_step, []).append(operation)
    first, *others = steps.values() if steps else ([],)
    runs = _runs_of(first)
    by_name = {run.name: run for run in runs}
    for operations in others:
        for run in _runs_of(operations):
            if run.name in by_name:
                by_name[run.name].later += run.operations
    return runs


def _runs_of(operations: Sequence[TracedOperation]) -> list[Run]:
    """The runs of one micro-step."""
    runs: list[Run] = []
    of_scope: dict[str, list[Run]] = {}
    for operation in operations:
        if operation.phase != "forward":
            continue
        if not runs or runs[-1].scope != operation.scope:
            earlier = of_scope.setdefault(operation.scope, [])
            number = f" ({len(earlier) + 1})" if earlier else ""
            runs.append(Run(len(runs), operation.scope, f"{operation.scope or 'model'}{number}"))
            earlier.append(runs[-1])
        runs[-1].forward.append(operation)
    reached = len(runs) - 1
    for operation in operations:
        if operation.phase == "backward" and runs:
            candidates = [run.index for run in of_scope.get(operation.scope, ()) if run.index <= reached]
            if candidates:
                reached = candidates[-1]
            runs[reached].backward.append(operation)
    _assign_recomputed(operations, runs, of_scope)
    return runs


def _assign_recomputed(
    operations: Sequence[TracedOperation], runs: Sequence[Run], of_scope: Mapping[str, Sequence[Run]]
) -> None:
    """Give repeated operations to the runs of their modules: within a module with several, in their order."""
    reached = 0
    for operation in operations:
        if operation.phase == "backward":
            reached = 0
        elif operation.phase == "recompute" and operation.scope in of_scope:
            candidates = of_scope[operation.scope]
            run = next((one for one in candidates if one.index >= reached), candidates[-1])
            reached = run.index
            runs[run.index].recomputed.append(operation)
