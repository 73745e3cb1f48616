"""Reference models of `memory_usage.levels`, `pinned.host_pinned` and `allocators.StaticGroups`, step by step."""

from __future__ import annotations

from buddysim.training.iteration.program import Program, TensorKind


def ref_levels(program: Program) -> list[dict[TensorKind, int]]:
    """Return the bytes during each step by nonzero kind; live tensors are listed step by step."""
    alive = set(program.resident)
    levels = []
    for step in program.steps:
        alive |= set(step.allocate)
        held: dict[TensorKind, int] = {}
        for tensor in (program.tensors[number] for number in alive):
            held[tensor.kind] = held.get(tensor.kind, 0) + tensor.byte_count
        levels.append({kind: byte_count for kind, byte_count in held.items() if byte_count})
        alive -= set(step.release)
    return levels


def ref_pinned(program: Program) -> int:
    """The most host memory pinned at once: at each step, all regions pinned so far without those given back before."""
    launched = {number: step.index for step in program.steps for number in step.tasks}
    held = [program.host_bytes]
    for step in program.steps:
        pinned = program.host_bytes + sum(task.pins for task in program.tasks if launched[task.number] <= step.index)
        held.append(pinned - sum(task.unpins for task in program.tasks if task.until < step.index))
    return max(held)


def ref_groups(program: Program, stashed_in_groups: bool = True) -> list[set[int]]:
    """Tensors that share a region: the largest first, each with the smallest group that it never meets."""
    steps = range(len(program.steps))
    alive: dict[int, set[int]] = {}
    for tensor in program.tensors:
        begins = [step.index for step in program.steps if tensor.number in step.allocate] or [0]
        ends = [step.index for step in program.steps if tensor.number in step.release] or [steps[-1]]
        alive[tensor.number] = set(range(begins[0], ends[0] + 1))

    def size(number: int) -> int:
        return program.tensors[number].byte_count

    groups: list[set[int]] = []
    closed: list[set[int]] = []
    for number in sorted(alive, key=lambda number: (-size(number), number)):
        alone = number in program.resident or (not stashed_in_groups and program.stashed(number))
        fitting = [
            group for group in groups if group not in closed and all(not alive[number] & alive[m] for m in group)
        ]
        if alone or not fitting:
            groups.append({number})
            closed += [groups[-1]] if alone else []
        else:
            min(fitting, key=lambda group: max(map(size, group))).add(number)
    return groups
