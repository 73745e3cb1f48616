"""The backward pass, in the order and with the buffers of PyTorch's engine."""

from __future__ import annotations

import heapq
import sys
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.layout import is_dense
from buddysim.training.autograd.node import Node
from buddysim.training.autograd.operators import copies, pointwise, reductions

if TYPE_CHECKING:
    from buddysim.training.autograd.tensor import Tensor

Buffers = dict[int, list["Tensor | None"]]


def backward(root: Tensor) -> None:
    """Compute the gradients of a scalar's leaves.

    Raises
    ------
    BuddysimError
        a tensor that isn't a scalar, or that no leaf that needs a gradient led to
    """
    tape = root.storage.tape
    if root.node is None or root.shape not in ((), (1,)):
        raise BuddysimError("backward: expected a tensor of one element that depends on a leaf that needs a gradient")
    with tape.in_phase("backward"), tape.no_grad():
        scope, node_name = tape.scope, tape.node
        first = copies.filled(tape, root.shape, root.dtype, "ones_like")
        _run(root.node, root.output, first)
        tape.scope, tape.node = scope, node_name


def _run(root: Node, output: int, first: Tensor) -> None:
    waiting_for = _dependencies(root)
    not_ready: Buffers = {}
    gradients: list[Tensor | None] = [None] * len(root.outputs)
    gradients[output] = first
    order = 0
    ready: list[tuple[int, int, Node, list[Tensor | None]]] = [(-root.sequence, order, root, gradients)]
    del gradients, first
    while ready:
        _, _, node, buffer = heapq.heappop(ready)
        results = _call(node, buffer)
        buffer.clear()
        node.release()
        for position, edge in enumerate(node.edges):
            if edge is None:
                continue
            follower, index = edge
            key = id(follower)
            waiting_for[key] -= 1
            inputs = not_ready.get(key)
            if inputs is None:
                inputs = not_ready[key] = [None] * len(follower.outputs)
            if results:
                _accumulate(inputs, index, results, position)
            if waiting_for[key] == 0:
                del not_ready[key]
                order += 1
                heapq.heappush(ready, (-follower.sequence, order, follower, inputs))
            del inputs


def _dependencies(root: Node) -> dict[int, int]:
    """How many edges lead to each node."""
    counts: dict[int, int] = {}
    seen = {id(root)}
    waiting = [root]
    while waiting:
        for edge in waiting.pop().edges:
            if edge is not None:
                key = id(edge[0])
                counts[key] = counts.get(key, 0) + 1
                if key not in seen:
                    seen.add(key)
                    waiting.append(edge[0])
    return counts


def _call(node: Node, buffer: list[Tensor | None]) -> list[Tensor | None]:
    """Run a node, and bring its results to the shapes and types of the outputs that they are gradients of."""
    if all(one is None for one in buffer):
        return []
    tape = node.tape
    tape.scope, tape.node = node.scope, node.name
    results = list(node.backward(buffer))
    for position, edge in enumerate(node.edges):
        result = results[position] if edge is not None else None
        if result is None or edge is None:
            continue
        shape, dtype = edge[0].outputs[edge[1]]
        if result.shape != shape:
            results[position] = result = reductions.sum_to(result, shape)
        if result.dtype is not dtype:
            results[position] = copies.to(result, dtype)
    return results


def _accumulate(inputs: list[Tensor | None], index: int, results: list[Tensor | None], position: int) -> None:
    """Add a result to a node's buffer: in place where nothing else refers to what it holds."""
    if inputs[index] is None:
        inputs[index] = results[position]
        results[position] = None
        return
    new = results[position]
    if new is None:
        return
    results[position] = None
    old = inputs[index]
    assert old is not None
    dense = is_dense(old.shape, old.strides)
    tape = old.storage.tape
    del old
    if dense and not tape.watched and sys.getrefcount(inputs[index]) == 2 and _alone(inputs[index]):
        pointwise.add_(inputs[index], new)
    else:
        inputs[index] = pointwise.add(inputs[index], new)


def _alone(tensor: Tensor) -> bool:
    """Whether one tensor refers to a storage."""
    return sys.getrefcount(tensor.storage) == 2
