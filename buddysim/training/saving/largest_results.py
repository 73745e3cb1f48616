"""Which stored results are offloaded within a budget of host memory: the largest first, as torchtitan selects them.

(``graph_trainer/cpu_offload.py``, `tag_all_offloadable_activations`.) Those of the last block stay, and what is smaller
than 4 KiB. Of equal ones the earlier are taken. What doesn't fit any more is passed over for what does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from buddysim.training.autograd.blocks import divide_path, is_block
from buddysim.training.autograd.records import TracedOperation
from buddysim.training.autograd.tape import Tape
from buddysim.training.options.checkpoint_rule import CheckpointRule, OffloadedStores, StoredOperators

_LEAST = 4096


def with_offloaded_results(rule: CheckpointRule, tape: Tape, budget: int, defer: int, ahead: int) -> CheckpointRule:
    """Return a rule whose stored results are offloaded, the largest first.

    Parameters
    ----------
    tape : of a step in which nothing is computed again
    budget : bytes of pinned host memory
    """
    assert rule.stored is not None
    candidates = [one for one in _results(tape, rule.stored) if one[0] < rule.last and one[2] >= _LEAST]
    selected, left = [], budget
    for block, number, size in sorted(candidates, key=lambda one: -one[2]):
        if size <= left:
            left -= size
            selected.append((block, number))
    return replace(rule, offloaded=OffloadedStores(tuple(sorted(selected)), defer, ahead))


def _results(tape: Tape, stored: StoredOperators) -> Iterator[tuple[int, int, int]]:
    """Yield block, number and bytes of each operator's first result that a block stores."""
    blocks: dict[str, list[TracedOperation]] = {}
    for operation in tape.operations:
        path = divide_path(operation.scope)[0]
        if operation.phase == "forward" and not operation.micro_step and is_block(path):
            blocks.setdefault(path, []).append(operation)
    for block, operations in enumerate(blocks.values()):
        keeps, number = stored.policy(), 0
        for operation in operations:
            if keeps(operation.name):
                yield block, number, operation.writes[0].bytes
                number += 1
