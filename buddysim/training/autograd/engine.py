"""The backward pass, in the order and with the buffers of PyTorch's engine."""

from __future__ import annotations

import heapq
import sys
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.layout import is_dense
from buddysim.training.autograd.node import GraphNode
from buddysim.training.autograd.operators import arithmetic, copies, fills, reductions

if TYPE_CHECKING:
    from buddysim.training.autograd.tensor import Tensor

Buffers = dict[int, list["Tensor | None"]]


def backward(root: Tensor, gradient: Tensor | None = None, retain_graph: bool = False) -> None:
    """Compute the gradients of a tensor's leaves.

    Parameters
    ----------
    gradient : of the tensor; 1 where none is given, of a tensor of one element
    retain_graph : what was saved stays as long as the tensor

    Raises
    ------
    BuddysimError
        a tensor of several elements without a gradient, or one that no leaf that needs a gradient led to
    """
    tape = root.storage.tape
    if root.node is None or (gradient is None and root.shape not in ((), (1,))):
        raise BuddysimError("backward: expected a tensor of one element that depends on a leaf that needs a gradient")
    with tape.in_phase("backward"), tape.no_grad():
        scope, node_name = tape.scope, tape.node
        first = fills.ones_like(root) if gradient is None else gradient
        del gradient
        if first.dtype is not root.dtype:
            first = copies.to(first, root.dtype)
        _run(root.node, root.output, first, retain_graph)
        while tape.after_backward:
            tape.after_backward.pop(0)()
        tape.scope, tape.node = scope, node_name


def _run(root: GraphNode, output: int, first: Tensor, retain_graph: bool) -> None:
    waiting_for = _dependencies(root)
    not_ready: Buffers = {}
    gradients: list[Tensor | None] = [None] * len(root.outputs)
    gradients[output] = first
    order = 0
    ready: list[tuple[int, int, GraphNode, list[Tensor | None]]] = [(-root.sequence, order, root, gradients)]
    del gradients, first
    while ready:
        _, _, node, buffer = heapq.heappop(ready)
        results = _call(node, buffer)
        buffer.clear()
        if not retain_graph:
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
        results.clear()


def _dependencies(root: GraphNode) -> dict[int, int]:
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


def _call(node: GraphNode, buffer: list[Tensor | None]) -> list[Tensor | None]:
    """Run a node, and bring its results to the shapes and types of the outputs that they are gradients of."""
    if all(one is None for one in buffer):
        return []
    tape = node.tape
    tape.scope, tape.node = node.scope, node.name
    for hook in node.hooks or ():
        hook()
    tape.running_node = node
    results = node.call(buffer)
    tape.running_node = None
    while tape.after_node:
        tape.after_node.pop(0)()
    for position, edge in enumerate(node.edges):
        result = results[position]
        if edge is None:
            results[position] = None
            continue
        if result is None:
            continue
        shape, dtype = edge[0].outputs[edge[1]]
        if result.shape != shape:
            results[position] = result = reductions.sum_to(result, shape)
        if result.dtype is not dtype:
            results[position] = copies.to(result, dtype)
    return results


def _accumulate(inputs: list[Tensor | None], index: int, results: list[Tensor | None], position: int) -> None:
    """Add a result to a node's buffer: in place where nothing else refers to what is there.

    A view refers to its base, and so isn't the only one on its storage (``input_buffer.cpp``). What is added stays with
    the node's results, which live until all of them are given out.
    """
    new = results[position]
    if new is None:
        return
    sole = sys.getrefcount(inputs[index]) == 2
    old = inputs[index]
    if old is None:
        inputs[index] = new
        results[position] = None
    elif sole and not old.is_view and sys.getrefcount(old.storage) == 2 and is_dense(old.shape, old.strides):
        arithmetic.add_(old, new)
    else:
        inputs[index] = arithmetic.add(old, new)
