"""Figures of a plan's groups where these are layers of a network: read from the program of an iteration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from buddysim.training.fitting.facts import GroupFacts, TimeBound
from buddysim.training.iteration.program import Program

_MAPS = ("feature_maps", "encoded_maps", "logits")


def layered_facts(
    program: Program, groups: Sequence[tuple[int, int]], read_outside: Collection[int], recomputed: Collection[int]
) -> GroupFacts:
    """Return the figures of an iteration.

    Parameters
    ----------
    groups : first and last layer of each
    read_outside : layers whose feature maps the backward step of another group reads in every plan
    recomputed : groups that run again, which hold nothing else for certain
    """
    count = len(groups)
    group_of = {layer: group for group, (first, last) in enumerate(groups) for layer in range(first, last + 1)}
    starts: dict[int, int] = {}
    kernels = [0] * count
    for step in program.steps:
        group = group_of.get(step.layer)
        if group is None or step.pass_ == "update":
            continue
        kernels[group] += step.compute_ps
        if step.pass_ == "backward":
            starts.setdefault(group, step.index)
    held = _held_bytes(program, group_of, starts, read_outside, recomputed)
    copied: Mapping[str, list[int]] = {"offload": [0] * count, "prefetch": [0] * count}
    pinned = [0] * count
    for task in program.tasks:
        if task.stream in copied and task.layer in group_of:
            copied[task.stream][group_of[task.layer]] += task.duration_ps
            pinned[group_of[task.layer]] += task.pins
    total = sum(step.compute_ps for step in program.steps)
    forward = sum(step.compute_ps for step in program.steps if step.pass_ == "forward")
    update = sum(step.compute_ps for step in program.steps if step.pass_ == "update")
    others = sum(program.tensors[one].byte_count for one in program.resident)
    host: defaultdict[str, int] = defaultdict(int)
    for task in program.tasks:
        if task.stream in ("host", "nvme"):
            host[task.stream] += task.duration_ps
    return GroupFacts(
        tuple(held), (others,) * count, others, others, tuple(kernels), (0,) * count, tuple(copied["offload"]),
        tuple(copied["prefetch"]), tuple(pinned), program.host_bytes, forward, update,
        (TimeBound(total, frozenset(range(count)), is_whole=True), *(TimeBound(one) for one in host.values())),
    )  # fmt: skip


def _held_bytes(
    program: Program,
    group_of: Mapping[int, int],
    starts: Mapping[int, int],
    read_outside: Collection[int],
    recomputed: Collection[int],
) -> list[int]:
    held = [0] * (max(group_of.values(), default=-1) + 1)
    for tensor, (first, last) in zip(program.tensors, program.lives, strict=True):
        group = group_of.get(tensor.layer)
        if group is None or tensor.kind not in _MAPS or group not in starts:
            continue
        is_certain = group not in recomputed or tensor.layer in read_outside
        if is_certain and first < program.first_backward and last >= starts[group]:
            held[group] += tensor.byte_count
    return held
