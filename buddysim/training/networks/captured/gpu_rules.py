"""What a GPU stores otherwise than the CPU that a script was captured on.

Dropout's noise takes a byte an element: CUDA's kernel draws, scales and multiplies at once and saves a mask. An
optimizer's step launches each of its operators once for all weights (foreach, the default there), not weight by weight;
so its temporaries are there for all weights at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from buddysim.formats.operator_graph import OperatorGraph

_NOISE = "bernoulli_"


class UpdateTemporary(NamedTuple):
    """The life of an update's temporary on a GPU.

    Attributes
    ----------
    alloc_operator, free_operator : that launch for all weights
    in_place : whether it lies in the memory of the temporary that it is made of
    """

    alloc_operator: int
    free_operator: int
    in_place: bool


def noise_storages(graph: OperatorGraph) -> dict[int, int]:
    """Return the storages of dropout's noise, and the bytes of an element there."""
    noise: dict[int, int] = {}
    for operator in graph.operators:
        if operator.short_name == _NOISE:
            for number in operator.outputs:
                tensor = graph.tensors[number]
                elements = prod(tensor.shape)
                if elements:
                    noise[tensor.storage] = max(1, tensor.extent // elements)
    return noise


def launched_together(graph: OperatorGraph) -> dict[int, tuple[int, ...]]:
    """Return the operators of each update that a GPU launches as one: by the first of them, those of its name.

    Operators on single numbers alone, such as counters of steps, are the host's and in none.
    """
    together: dict[int, tuple[int, ...]] = {}
    by_name: dict[str, list[int]] = {}
    for number, operator in enumerate(graph.operators):
        if operator.kind != "compute":
            continue
        if operator.phase != "optimizer":
            together |= {group[0]: tuple(group) for group in by_name.values()}
            by_name = {}
        elif any(prod(graph.tensors[one].shape) > 1 for one in (*operator.inputs, *operator.outputs)):
            by_name.setdefault(operator.name, []).append(number)
    return together | {group[0]: tuple(group) for group in by_name.values()}


def update_temporaries(graph: OperatorGraph, together: Mapping[int, tuple[int, ...]]) -> dict[int, UpdateTemporary]:
    """Return the temporaries of updates that a GPU makes for all weights at once, by their numbers.

    One that is made of another, which ends there, lies in its memory: PyTorch's foreach versions divide and add in
    place (``torch/optim/adam.py``, `_multi_tensor_adam`).

    Parameters
    ----------
    together : see `launched_together`
    """
    launch = {one: first for first, group in together.items() for one in group}
    temporaries = {
        number: storage
        for number, storage in enumerate(graph.storages)
        if storage.alloc_operator in launch and storage.free_operator in launch
    }
    ending: dict[tuple[int | None, int], list[int]] = {}
    for number, storage in temporaries.items():
        ending.setdefault((storage.free_operator, storage.bytes), []).append(number)
    made_of: dict[int, int] = {}
    for number, storage in temporaries.items():
        before = ending.get((storage.alloc_operator, storage.bytes), [])
        earlier = [one for one in before if one != number]
        if earlier:
            made_of[number] = earlier[-1]
            before.remove(earlier[-1])
    into = {before: number for number, before in made_of.items()}
    lives: dict[int, UpdateTemporary] = {}
    for number, storage in temporaries.items():
        last = number
        while last in into:
            last = into[last]
        begin = launch[storage.alloc_operator or 0]
        end = max(begin, launch[temporaries[last].free_operator or 0])
        lives[number] = UpdateTemporary(begin, end, number in made_of)
    return lives
