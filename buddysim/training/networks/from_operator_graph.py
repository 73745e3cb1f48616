"""A network from the operators that PyTorch ran: what a captured training becomes for the training simulator.

Each forward operator that computes is read as a layer. Tensors are followed through their storages: a view stands for
the layer that wrote its memory. Reading ends where the loss begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from buddysim.base.errors import BuddysimError
from buddysim.formats.operator_graph import Operator, OperatorGraph, Tensor, load_operators
from buddysim.training.networks import kinds
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network

#: Operators of losses, behind which the network ends.
_LOSSES = frozenset(
    {
        "_log_softmax",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "huber_loss",
        "l1_loss",
        "mse_loss",
        "nll_loss2d_forward",
        "nll_loss_forward",
        "ones_like",
        "smooth_l1_loss",
    }
)
_COPIES = frozenset({"clone", "_to_copy", "copy_", "contiguous"})


def network_from_operators(graph: OperatorGraph, name: str) -> Network:
    """The network whose training a graph shows.

    Parameters
    ----------
    graph : one iteration
    name : of the network
    """
    return _Reader(graph, name).read()


def read_operator_network(path: str | os.PathLike[str]) -> Network:
    """The network of a file that a capture wrote."""
    path = Path(path)
    graph = load_operators(path)
    try:
        return network_from_operators(graph, path.name.removesuffix(".json").removesuffix(".graph"))
    except BuddysimError as error:
        raise BuddysimError(f"{path}: {error}") from None


class _Reader:
    def __init__(self, graph: OperatorGraph, name: str) -> None:
        self.graph = graph
        self.layers: dict[int, int] = {}  # by storage
        self.masks: dict[int, float] = {}  # the share that a dropout mask keeps, by storage
        self.number = 0  # of the operator that is being read
        self.plain = {name: kind for kind, known in kinds.REGISTRY.items() for name in known.torch.operators}
        start = self._first_input()
        self.batch = start.shape[0]
        self.layers[start.storage] = 0
        self.net = NetworkBuilder(
            name,
            start.shape[1:],
            source=f"operators of iteration {graph.iteration} of a captured training",
            description=f"captured with a batch of {self.batch}",
        )

    def read(self) -> Network:
        for number, operator in enumerate(self.graph.operators):
            self.number = number
            if operator.phase != "forward" or (operator.short_name in _LOSSES and self.net.last):
                break
            if operator.kind == "compute":
                self._read(operator)
        return self.net.build()

    def _first_input(self) -> Tensor:
        for operator in self.graph.operators:
            for number in operator.inputs if operator.kind == "compute" and operator.phase == "forward" else ():
                tensor = self.graph.tensors[number]
                if self.graph.storages[tensor.storage].role == "input" and len(tensor.shape) > 1:
                    return tensor
        raise BuddysimError("operator graph: no operator reads an input of samples")

    def _refuse(self, operator: Operator, problem: str) -> NoReturn:
        where = f" in module {operator.module!r}" if operator.module else ""
        raise BuddysimError(f"operator graph: operator {self.number} ({operator.name}){where}: {problem}")

    def _read(self, operator: Operator) -> None:
        name = operator.short_name
        before = [self.layers[s] for s in self._storages(operator) if s in self.layers]
        if name in ("bernoulli_", "div_") and not before:
            self._mask(operator)
        elif not before:
            return  # a counter of steps, the labels
        elif name in _COPIES and len(before) == 1:
            self._wrote(operator, before[0])
        elif name in self.plain:
            self._add(operator, self.plain[name], before)
        elif name in _READERS:
            kind, attributes = _READERS[name](self, operator)
            self._add(operator, kind, before, **attributes)
        else:
            self._refuse(operator, "no kind of layer corresponds to it: read the model as a module instead")

    def _add(self, operator: Operator, kind: str, before: list[int], **attributes: Any) -> None:
        name = plain = operator.module or kind
        count = 1
        while self.net.has(name):
            count += 1
            name = f"{plain}/{kind}" if count == 2 else f"{plain}/{kind}{count}"
        index = self.net.add_described(kind, name, before, None, True, attributes)
        shape = self.graph.tensors[operator.outputs[0]].shape
        expected = (self.batch, *self.net.shape(index))
        if shape != expected and not (kind == "fc" and shape[-1] == expected[-1]):
            self._refuse(operator, f"wrote a tensor of {shape}, expected {expected}")
        self._wrote(operator, index)

    def _wrote(self, operator: Operator, layer: int) -> None:
        self.layers[self.graph.tensors[operator.outputs[0]].storage] = layer

    def _mask(self, operator: Operator) -> None:
        storage = self.graph.tensors[operator.outputs[0]].storage
        if operator.short_name == "bernoulli_":
            kept = operator.arguments.get("p", 0.5)
            self.masks[storage] = float(kept) if isinstance(kept, int | float) else 0.5

    def _storages(self, operator: Operator) -> list[int]:
        """The storages that an operator reads, in order."""
        return [self.graph.tensors[number].storage for number in operator.inputs]

    def _role(self, tensor: int) -> str:
        return self.graph.storages[self.graph.tensors[tensor].storage].role

    def weights(self, operator: Operator) -> list[Tensor]:
        """The weights that an operator reads, in order."""
        return [self.graph.tensors[number] for number in operator.inputs if self._role(number) == "weight"]

    def conv(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        weights, arguments = self.weights(operator), operator.arguments
        if arguments.get("transposed") or not weights or len(weights[0].shape) != 4:
            self._refuse(operator, "not a convolution of two dimensions with weights")
        attributes = {
            "channels": weights[0].shape[0],
            "kernel": weights[0].shape[2:],
            "stride": _pair(arguments.get("stride", 1)),
            "pad": _pair(arguments.get("padding", 0)),
            "dilation": _pair(arguments.get("dilation", 1)),
            "groups": arguments.get("groups", 1),
            "bias": len(weights) > 1,
        }
        return "conv", attributes

    def fc(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        weights = self.weights(operator)
        if not weights:
            self._refuse(operator, "a product without weights: no kind of layer corresponds to it")
        features = self.graph.tensors[operator.outputs[0]].shape[-1]
        return "fc", {"features": features, "bias": len(weights) > 1}

    def batchnorm(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        return "batchnorm", {"affine": bool(self.weights(operator))}

    def maxpool(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        if set(_pair(operator.arguments.get("dilation", 1))) != {1}:
            self._refuse(operator, "pooling with dilation")
        return "maxpool", _window(operator)

    def avgpool(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        return "avgpool", _window(operator)

    def pooled(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        """Adaptive pooling, or a mean over height and width."""
        before = self.graph.tensors[operator.inputs[0]].shape
        after = self.graph.tensors[operator.outputs[0]].shape
        out = after[2:] if len(after) == 4 else (1, 1)
        if len(before) != 4 or after[:2] != before[:2] or before[2] % out[0] or before[3] % out[1]:
            self._refuse(operator, f"pooling of {before} to {after}: expected whole windows of height and width")
        return "avgpool", {"kernel": (before[2] // out[0], before[3] // out[1])}

    def add(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        if operator.arguments.get("alpha", 1) != 1 or len(operator.inputs) != 2 or self.weights(operator):
            self._refuse(operator, "a sum of something other than two maps")
        return "add", {}

    def concat(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        if operator.arguments.get("dim", 0) not in (1, -3):
            self._refuse(operator, "concatenation along another extent than channels")
        return "concat", {}

    def dropout(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        kept = [self.masks[s] for s in self._storages(operator) if s in self.masks]
        if not kept:
            self._refuse(operator, "a product of two maps: no kind of layer corresponds to it")
        return "dropout", {"share": round(1 - kept[0], 6)}

    def native_dropout(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        share = operator.arguments.get("p", 0.5)
        return "dropout", {"share": share}


_READERS: dict[str, Callable[[_Reader, Operator], tuple[str, dict[str, Any]]]] = {
    "convolution": _Reader.conv,
    "_convolution": _Reader.conv,
    "addmm": _Reader.fc,
    "mm": _Reader.fc,
    "native_batch_norm": _Reader.batchnorm,
    "_native_batch_norm_legit": _Reader.batchnorm,
    "max_pool2d_with_indices": _Reader.maxpool,
    "avg_pool2d": _Reader.avgpool,
    "_adaptive_avg_pool2d": _Reader.pooled,
    "mean": _Reader.pooled,
    "add": _Reader.add,
    "add_": _Reader.add,
    "cat": _Reader.concat,
    "mul": _Reader.dropout,
    "native_dropout": _Reader.native_dropout,
}


def _pair(value: object) -> tuple[int, ...]:
    """Height and width, of one number or two."""
    numbers = tuple(int(one) for one in value) if isinstance(value, tuple) else (int(value),)  # type: ignore[call-overload]
    return numbers if len(numbers) == 2 else (numbers[0], numbers[0])


def _window(operator: Operator) -> dict[str, Any]:
    arguments = operator.arguments
    kernel = _pair(arguments.get("kernel_size", 1))
    return {
        "kernel": kernel,
        "stride": _pair(arguments["stride"]) if arguments.get("stride") else kernel,
        "pad": _pair(arguments.get("padding", 0)),
        "ceil": bool(arguments.get("ceil_mode", False)),
    }
