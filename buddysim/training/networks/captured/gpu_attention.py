"""Attention with dropout in one kernel forward and one backward, as a GPU runs it.

What these save, by ``torch/_meta_registrations.py``: query, key, value, result and the logarithm of each row's sum. In
half precision and without a mask it is flash attention, otherwise memory-efficient attention, whose rows are padded to
multiples of 32 (`_scaled_dot_product_efficient_attention`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from buddysim.formats.operator_graph import OperandTensor, Operator, OperatorGraph, SavedOperand, Storage
from buddysim.training.networks.captured.attention_pattern import AttentionPattern, find_attention
from buddysim.training.networks.recorded.work import BACKWARD_PRODUCTS

_HALF = ("float16", "bfloat16")
_ROWS = 32
_STATISTIC_BYTES = 4  # float32
_CAUSAL = "tril"
#: An operator that a GPU doesn't run: it stays, so that all numbers are those of the capture.
_REPLACED = "aten.replaced"


def with_fused_attention(graph: OperatorGraph) -> OperatorGraph:
    """Return the graph with each attention with dropout as a GPU runs it.

    Operators and storages keep their numbers. Those that a GPU doesn't have compute nothing, and have no bytes.
    """
    for pattern in list(find_attention(graph)):
        graph = _Fusion(graph, pattern).graph()
    return graph


class _Fusion:
    def __init__(self, graph: OperatorGraph, pattern: AttentionPattern) -> None:
        self.original, self.pattern = graph, pattern
        self.operators, self.tensors = list(graph.operators), list(graph.tensors)
        self.storages = list(graph.storages)
        self.forward, self.backward = pattern.forward[-1], pattern.backward[-1]
        self.module = graph.operators[self.forward].module

    def graph(self) -> OperatorGraph:
        """Return the graph; the same where something reads a gradient before all of them are there."""
        pattern = self.pattern
        replaced = {*pattern.forward, *pattern.backward}
        gradients = [self._storage(one) for one in pattern.gradients]
        users = {one for storage in gradients for one in self.original.readers(storage)} - replaced
        if min(users, default=self.backward) < self.backward:
            return self.original
        result, copy = self._without_copy(pattern.result, "forward", replaced)
        replaced |= copy
        made: list[int] = []
        for number in pattern.gradients:
            one, copy = self._without_copy(number, "backward", replaced)
            made.append(one)
            replaced |= copy
        unused = self._unused(replaced)
        is_causal = any(self.operators[one].short_name == _CAUSAL for one in unused)
        replaced |= unused
        self._fuse(result, made, is_causal, replaced)
        return replace(
            self.original,
            storages=tuple(self.storages),
            tensors=tuple(self.tensors),
            operators=tuple(self.operators),
            saved_operands=tuple(self.saved),
        )

    def _storage(self, tensor: int) -> int:
        return self.tensors[tensor].storage

    def _without_copy(self, tensor: int, phase: str, replaced: set[int]) -> tuple[int, set[int]]:
        """Return the tensor that a kernel writes, and the copy that it does without, if any.

        The kernel writes tokens before heads: a copy that exchanges both has nothing to do.
        """
        readers = [one for one in self.original.readers(self._storage(tensor)) if one not in replaced]
        readers = [one for one in readers if self.operators[one].phase == phase]
        if len(readers) != 1 or self.operators[readers[0]].short_name != "clone":
            return tensor, set()
        copy = self.operators[readers[0]]
        batch, heads, tokens, size = self._shape(self.pattern.result if phase == "forward" else self.pattern.query)
        if self.tensors[copy.inputs[0]].shape not in ((batch, tokens, heads, size), (batch, heads, tokens, size)):
            return tensor, set()
        return copy.outputs[0], {readers[0]}

    def _shape(self, tensor: int) -> tuple[int, ...]:
        """Return a shape by samples, heads, tokens and features."""
        shape = self.tensors[tensor].shape
        lead = self.tensors[self.pattern.query].shape[:2]
        return shape if len(shape) == 4 else (*lead, *shape[-2:])

    def _unused(self, replaced: set[int]) -> set[int]:
        """Return forward operators of the attention whose results nothing reads any more, as those of a causal mask."""
        unused: set[int] = set()
        for number in reversed(range(self.pattern.forward[0], self.forward)):
            operator = self.operators[number]
            if operator.kind != "compute" or number in replaced:
                continue
            storages = {self._storage(one) for one in operator.outputs}
            readers = {one for storage in storages for one in self.original.readers(storage)}
            is_temporary = all((self.storages[one].alloc_operator or 0) >= self.pattern.forward[0] for one in storages)
            if is_temporary and readers <= replaced | unused:
                unused.add(number)
        return unused

    def _fuse(self, result: int, gradients: list[int], is_causal: bool, replaced: set[int]) -> None:
        pattern = self.pattern
        query, key, value = (self._whole(one) for one in (pattern.query, pattern.key, pattern.value))
        out = self._add(self.tensors[query], self._storage(result), pattern.value)
        flops = sum(self.original.operators[one].flops for one in pattern.forward) // (2 if is_causal else 1)
        doubled = sum(self._doubled_flops(one) for one in pattern.forward) // (2 if is_causal else 1)
        mask = () if pattern.mask is None or is_causal else (pattern.mask,)
        is_flash = self.tensors[query].dtype in _HALF and not mask
        kernel = f"_scaled_dot_product_{'flash' if is_flash else 'efficient'}_attention"
        rows = self._statistics(self.tensors[query], 1 if is_flash else _ROWS)
        made = [
            self._add(self.tensors[one], self._storage(gradient))
            for one, gradient in zip((query, key, value), gradients, strict=True)
        ]
        used = {self._storage(one) for one in (query, key, value, out, rows, pattern.gradient, *mask, *made)}
        self._remove(replaced, used)
        operands = (query, key, value, *mask)
        self.operators[self.forward] = Operator(
            f"aten.{kernel}.default", "forward", "compute", self.module, None, operands, (out, rows), flops, {}, doubled
        )
        products = BACKWARD_PRODUCTS
        self.operators[self.backward] = Operator(
            *(f"aten.{kernel}_backward.default", "backward", "compute", self.module, self.forward),
            (pattern.gradient, *operands, out, rows),
            tuple(made),
            *(int(products * flops), {}, int(products * doubled)),
        )
        for storage in used - {self._storage(one) for one in made}:
            self._extend(storage, self.backward)
        for tensor, number in [(out, self.forward), *((one, self.backward) for one in made)]:
            one = self.storages[self._storage(tensor)]
            self.storages[self._storage(tensor)] = replace(one, alloc_operator=number)
        self._save(operands, (out, rows), kernel)

    def _doubled_flops(self, number: int) -> int:
        operator = self.original.operators[number]
        return operator.flops if operator.doubled is None else operator.doubled

    def _whole(self, tensor: int) -> int:
        """Return the number of a tensor by samples, heads, tokens and features: a key's last axes are exchanged."""
        one = self.tensors[tensor]
        if tensor != self.pattern.key:
            return tensor

        def exchanged(sizes: tuple[int, ...]) -> tuple[int, ...]:
            return (*sizes[:-2], sizes[-1], sizes[-2])

        doubled = None if one.doubled is None else exchanged(one.doubled)
        self.tensors.append(replace(one, shape=exchanged(one.shape), strides=exchanged(one.strides), doubled=doubled))
        return len(self.tensors) - 1

    def _add(self, like: OperandTensor, storage: int, features_of: int | None = None) -> int:
        """Add a contiguous tensor of a storage with the shape of another; its features may be those of a third one."""
        shape, doubled = like.shape, like.doubled
        if features_of is not None:
            size = self.tensors[features_of].shape[-1]
            shape, doubled = (*shape[:-1], size), None if doubled is None else (*doubled[:-1], size)
        strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        extent = self.storages[storage].bytes
        self.tensors.append(OperandTensor(storage, 0, shape, strides, like.dtype, extent, doubled))
        return len(self.tensors) - 1

    def _statistics(self, query: OperandTensor, multiple: int) -> int:
        """Add the logarithms of the rows' sums; return the number of the tensor."""

        def padded(shape: tuple[int, ...]) -> tuple[int, ...]:
            return (*shape[:-2], -(-shape[-2] // multiple) * multiple)

        shape = padded(query.shape)
        doubled = None if query.doubled is None else padded(query.doubled)
        size = _STATISTIC_BYTES * prod(shape)
        twice = None if doubled is None else _STATISTIC_BYTES * prod(doubled)
        name = f"{self.module}: log-sum-exp"
        self.storages.append(Storage(size, "feature_map", name, self.forward, self.backward, twice))
        strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        self.tensors.append(OperandTensor(len(self.storages) - 1, 0, shape, strides, "float32", size, doubled))
        return len(self.tensors) - 1

    def _remove(self, replaced: Iterable[int], used: set[int]) -> None:
        """Take replaced operators away, and the memory of what they wrote for each other."""
        for number in replaced:
            operator = self.operators[number]
            self.operators[number] = Operator(_REPLACED, operator.phase, "allocation", operator.module)
            for storage in {self._storage(one) for one in operator.outputs} - used:
                self.storages[storage] = replace(self.storages[storage], bytes=0, doubled=None)

    def _extend(self, storage: int, last: int) -> None:
        """Let a storage live until an operator."""
        one = self.storages[storage]
        if one.free_operator is not None:
            self.storages[storage] = replace(one, free_operator=max(one.free_operator, last))

    def _save(self, operands: tuple[int, ...], results: tuple[int, ...], kernel: str) -> None:
        """Replace what the attention's operators saved."""
        node = "".join(part.capitalize() for part in kernel.split("_")) + "Backward0"
        inside = range(self.pattern.forward[0] - 1, self.forward + 1)
        of_these = [one for one in self.original.saved_operands if one.operator in inside and one.module == self.module]
        first = self.original.saved_operands.index(of_these[0]) if of_these else len(self.original.saved_operands)
        before = [one for one in self.original.saved_operands[:first] if one not in of_these]
        behind = [one for one in self.original.saved_operands[first:] if one not in of_these]
        added = [SavedOperand(one, self.forward - 1, node, self.module) for one in operands]
        added += [SavedOperand(one, self.forward, node, self.module) for one in results]
        self.saved = [*before, *added, *behind]
