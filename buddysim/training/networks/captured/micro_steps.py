"""Micro-steps of a captured iteration: forward and backward passes before one update of the weights."""

from __future__ import annotations

from itertools import accumulate

from buddysim.formats.operator_graph import OperatorGraph


def micro_steps(graph: OperatorGraph) -> tuple[int, ...]:
    """Return the micro-step of each operator; all are 0 where the passes differ, as those of two networks do.

    A forward operator behind a backward one begins a micro-step, if modules run before the next backward one. They are
    equal if the modules run the same operators.
    """
    numbers: list[int] = []
    forward: list[list[tuple[str, str]]] = [[]]
    was_backward = False
    for operator in graph.operators:
        if operator.kind == "compute" and operator.phase == "forward":
            if was_backward:
                forward.append([])
            was_backward = False
            if operator.module:
                forward[-1].append((operator.short_name, operator.module))
        was_backward |= operator.kind == "compute" and operator.phase == "backward"
        numbers.append(len(forward) - 1)
    with_modules = list(accumulate(map(bool, forward)))
    if any(one != forward[0] for one in forward if one):
        return (0,) * len(numbers)
    return tuple(max(0, with_modules[number] - 1) for number in numbers)
