"""Attention with dropout as the CPU runs it: products, a softmax and noise; a GPU has one kernel for all of it.

PyTorch's ``scaled_dot_product_attention`` falls back to these operators (``_scaled_dot_product_attention_math`` in
``aten/src/ATen/native/transformers/attention.cpp``), the only ones that call ``_safe_softmax``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from buddysim.formats.operator_graph import Operator, OperatorGraph
from buddysim.training.networks.captured.gpu_rules import noise_storages

_SOFTMAX = "_safe_softmax"
_PRODUCT = "bmm"
_COPIES = ("clone", "_to_copy")


@dataclass(frozen=True)
class AttentionPattern:
    """The operators and the tensors of one attention, by their numbers.

    Attributes
    ----------
    forward : operators that compute
    backward : those that differentiate them
    query, key, value : tensors; the key has its last axes exchanged
    mask : that is added to the scores; None: none
    result : tensor that the forward pass returns
    gradient : of the result
    gradients : of query, key and value
    """

    forward: tuple[int, ...]
    backward: tuple[int, ...]
    query: int
    key: int
    value: int
    mask: int | None
    result: int
    gradient: int
    gradients: tuple[int, int, int]


def find_attention(graph: OperatorGraph) -> Iterator[AttentionPattern]:
    """Yield each attention with dropout of a graph that is complete, forward and backward."""
    noise = frozenset(noise_storages(graph))
    for number, operator in enumerate(graph.operators):
        if operator.short_name == _SOFTMAX and operator.phase == "forward" and operator.kind == "compute":
            pattern = _Search(graph, noise, number).pattern()
            if pattern is not None:
                yield pattern


class _Search:
    def __init__(self, graph: OperatorGraph, noise: frozenset[int], softmax: int) -> None:
        self.graph, self.noise, self.softmax = graph, noise, softmax

    def pattern(self) -> AttentionPattern | None:
        """Return the attention around the softmax; None: it has another form."""
        scores = self._scores()
        weighted = self._weighted()
        if scores is None or weighted is None:
            return None
        product, mask, adds = scores
        (query, query_steps), (key, key_steps) = (self._source(one, product) for one in self._at(product).inputs[:2])
        noisy, noise_steps, last = weighted
        value, value_steps = self._source(self._at(last).inputs[1], last)
        result = self._at(last).outputs[0]
        copies = self._users(result, "forward")
        if len(copies) == 1 and self._at(copies[0]).short_name == "_to_copy":
            result = self._at(copies[0]).outputs[0]
        else:
            copies = []
        forward = sorted(
            {*query_steps, *key_steps, *value_steps, *noise_steps, *adds, product, self.softmax, noisy, last, *copies}
        )
        backward = self._backward(forward)
        if not backward or not query_steps or not key_steps:
            return None
        gradients = [
            self._gradient_of(query_steps[-1], backward),
            self._gradient_of(key_steps[-1], backward),
            self._gradient_of_value(value_steps, last, noisy, backward),
        ]
        own = {self._storage(value), *(self._storage(each) for one in forward for each in self._at(one).outputs)}
        gradient = next((one for one in self._at(backward[0]).inputs if self._storage(one) not in own), None)
        if None in gradients or gradient is None:
            return None
        first, second, third = (one for one in gradients if one is not None)
        return AttentionPattern(
            *(tuple(forward), tuple(backward), query, key, value, mask, result, gradient),
            gradients=(first, second, third),
        )

    def _at(self, number: int) -> Operator:
        return self.graph.operators[number]

    def _storage(self, tensor: int) -> int:
        return self.graph.tensors[tensor].storage

    def _elements(self, tensor: int) -> int:
        return prod(self.graph.tensors[tensor].shape)

    def _writer(self, tensor: int, before: int) -> int | None:
        """Return the operator that wrote a tensor last before another operator."""
        writers = [one for one in self.graph.writers(self._storage(tensor)) if one < before]
        return writers[-1] if writers else None

    def _users(self, tensor: int, phase: str) -> list[int]:
        return [one for one in self.graph.readers(self._storage(tensor)) if self._at(one).phase == phase]

    def _scores(self) -> tuple[int, int | None, list[int]] | None:
        """Return the product of queries and keys, the mask that is added to it, and the operator that adds it."""
        scores = self._at(self.softmax).inputs[0]
        writer = self._writer(scores, self.softmax)
        if writer is None:
            return None
        if self._at(writer).short_name == _PRODUCT:
            return writer, None, []
        if self._at(writer).short_name.removesuffix("_") != "add":
            return None
        mask = product = None
        for tensor in self._at(writer).inputs:
            one = self._writer(tensor, writer)
            if one is not None and self._at(one).short_name == _PRODUCT:
                product = one
            else:
                mask = tensor
        return None if product is None else (product, mask, [writer])

    def _weighted(self) -> tuple[int, list[int], int] | None:
        """Return the operator that multiplies by the noise, those that make the noise, and the product with values."""
        probabilities = self._at(self.softmax).outputs[0]
        for user in self._users(probabilities, "forward"):
            noise = [one for one in self._at(user).inputs if self._storage(one) in self.noise]
            if self._at(user).short_name != "mul" or not noise:
                continue
            products = [
                one
                for one in self._users(self._at(user).outputs[0], "forward")
                if self._at(one).short_name == _PRODUCT and len(self._at(one).inputs) == 2
            ]
            if len(products) == 1:
                return user, list(self.graph.writers(self._storage(noise[0]))), products[0]
        return None

    def _source(self, tensor: int, before: int) -> tuple[int, list[int]]:
        """Return the tensor that an operand is scaled and copied from, and the operators that do so, the last first."""
        steps: list[int] = []
        scaled = False
        while (writer := self._writer(tensor, before)) is not None:
            operator = self._at(writer)
            scales = operator.short_name == "mul" and len(operator.inputs) == 1 and not scaled
            copies = operator.short_name in _COPIES[scaled:] and operator.module == self._at(before).module
            if self._elements(operator.outputs[0]) != self._elements(tensor):
                break  # it made more, as queries, keys and values at once
            if operator.phase != "forward" or not (scales or copies):
                break
            scaled |= scales
            steps.append(writer)
            tensor, before = operator.inputs[0], writer
        return tensor, steps

    def _backward(self, forward: list[int]) -> list[int]:
        """Return the operators that differentiate the attention, and views between its operators or behind them."""
        end = forward[-1] + 1
        while end < len(self.graph.operators) and self._at(end).kind == "view" and self._at(end).phase == "forward":
            end += 1
        covered = {one for one in range(forward[0], end) if self._at(one).kind != "compute"} | set(forward)
        return [
            number
            for number, one in enumerate(self.graph.operators)
            if one.phase == "backward" and one.kind == "compute" and one.forward in covered
        ]

    def _gradient_of(self, forward: int, backward: list[int]) -> int | None:
        """Return the gradient that the differential of an operator gives."""
        results = [self._at(one).outputs for one in backward if self._at(one).forward == forward]
        return results[-1][0] if results and results[-1] else None

    def _gradient_of_value(self, steps: list[int], last: int, noisy: int, backward: list[int]) -> int | None:
        copied = [one for one in steps if self._at(one).short_name == "_to_copy"]
        if copied:
            return self._gradient_of(copied[-1], backward)
        weights = self._storage(self._at(noisy).outputs[0])
        for one in backward:
            operator = self._at(one)
            if operator.forward == last and weights in {self._storage(tensor) for tensor in operator.inputs}:
                return operator.outputs[0]
        return None
