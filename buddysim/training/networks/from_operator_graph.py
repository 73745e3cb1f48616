"""A network from the operators that PyTorch ran: what a captured training becomes for the training simulator.

Each forward operator that computes is read as a layer. Tensors are followed through their storages: a view stands for
the layer that wrote its memory, or for a part of it. A layer runs in place where its operator did. Reading ends where
the loss begins.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.formats.operator_graph import OperandTensor, Operator, OperatorGraph, load_operators
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
_ALIASES = frozenset({"_to_copy", "copy_"})


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
        self.masks: dict[int, float] = {}  # fraction that a dropout mask retains, by storage
        self.tables: dict[int, int] = {}  # rows of a table that positions were looked up in, by storage
        self.parts: dict[tuple[int, str, int, int], int] = {}  # views of parts of a layer
        self.counted: set[tuple[int, int]] = set()  # storage and offset of weights that a layer has
        self.absorbed: dict[int, int] = {}  # operators that belong to a layer before them
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

    def _first_input(self) -> OperandTensor:
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
        before = [self._seen(tensor) for tensor in operator.inputs if self._storage(tensor) in self.layers]
        if self.number in self.absorbed:
            self._wrote(operator, self.absorbed[self.number])
        elif name in ("bernoulli_", "div_") and not before:
            self._mask(operator)
        elif name == "embedding" and not before:
            self.tables[self._storage(operator.outputs[0])] = self.weights(operator)[0].shape[0]
        elif not before:
            return  # a counter of steps, the labels, a mask of later tokens
        elif name in _ALIASES and len(before) == 1:
            self._wrote(operator, before[0])
        elif name in self.plain:
            self._add(operator, self.plain[name], before)
        elif name in _READERS:
            self._add_read(operator, before)
        else:
            self._refuse(operator, "no kind of layer corresponds to it: read the model as a module instead")

    def _add_read(self, operator: Operator, before: list[int]) -> None:
        try:
            kind, attributes = _READERS[operator.short_name](self, operator)
        except (LookupError, TypeError, ValueError, ArithmeticError):
            self._refuse(operator, "its tensors or arguments are none that it can have")
        self._add(operator, kind, before, **attributes)

    def _add(self, operator: Operator, kind: str, before: list[int], **attributes: Any) -> None:
        name = plain = (operator.module or kind) + ("/order" if kind == "copy" else "")
        count = 1
        while self.net.has(name):
            count += 1
            name = f"{plain}/{kind}" if count == 2 else f"{plain}/{kind}{count}"
        written = self._storage(operator.outputs[0])
        in_place = written in map(self._storage, operator.inputs)
        index = self.net.add_described(kind, name, before, None, in_place, attributes)
        shape = self.graph.tensors[operator.outputs[0]].shape
        expected = (self.batch, *self.net.shape(index))
        if math.prod(shape) != math.prod(expected) or not (shape == expected or len(expected) == 3):
            self._refuse(operator, f"wrote a tensor of {shape}, expected {expected}")
        self._wrote(operator, index)
        if kind == "fc":
            self._absorb_bias(operator, index)

    def _seen(self, number: int) -> int:
        """The layer that a tensor is of: the one that wrote its storage, or a view of a part of that."""
        tensor = self.graph.tensors[number]
        layer = self.layers[tensor.storage]
        own, count = self.net.shape(layer), math.prod(tensor.shape)
        whole = self.batch * math.prod(own)
        if count >= whole or whole % count or len(own) != 2:
            return layer
        of = whole // count
        width = self.graph.storages[tensor.storage].bytes // whole
        if of == own[0] and tensor.shape == (self.batch, own[1]):
            kind, number = "take", tensor.offset // width // own[1]
            attributes = {"token": number}
        elif own[1] % of == 0:
            column = tensor.offset // width
            inside = column < own[1]  # parts of each token, or one after the other
            kind, number = "part", column * of // (own[1] if inside else whole)
            attributes = {"of": of, "number": number}
        else:
            self._refuse(self.graph.operators[self.number], f"reads {tensor.shape} of {own}")
        key = (layer, kind, of, number)
        if key not in self.parts:
            name = f"{self.net.name_of(layer)}/{kind}{number}" + (f"of{of}" if kind == "part" else "")
            self.parts[key] = self.net.add_described(kind, name, [layer], None, True, attributes)
        return self.parts[key]

    def _absorb_bias(self, operator: Operator, index: int) -> None:
        """A bias that the next operator adds belongs to the product."""
        following = self._bias_after(operator)
        if following is not None:
            self.absorbed[following] = index

    def _bias_after(self, operator: Operator) -> int | None:
        following = range(self.number + 1, len(self.graph.operators))
        after = next((n for n in following if self.graph.operators[n].kind == "compute"), None)
        if after is None or self.graph.operators[after].short_name not in ("add", "add_"):
            return None
        read = self.graph.operators[after].inputs
        weights = self.weights(self.graph.operators[after])
        is_bias = len(weights) == 1 and len(weights[0].shape) == 1
        return after if is_bias and self._storage(operator.outputs[0]) in map(self._storage, read) else None

    def _wrote(self, operator: Operator, layer: int) -> None:
        self.layers[self.graph.tensors[operator.outputs[0]].storage] = layer

    def _mask(self, operator: Operator) -> None:
        storage = self.graph.tensors[operator.outputs[0]].storage
        if operator.short_name == "bernoulli_":
            retained = operator.arguments.get("p", 0.5)
            self.masks[storage] = float(retained) if isinstance(retained, int | float) else 0.5

    def _storage(self, tensor: int) -> int:
        return self.graph.tensors[tensor].storage

    def _storages(self, operator: Operator) -> list[int]:
        """The storages that an operator reads, in order."""
        return [self.graph.tensors[number].storage for number in operator.inputs]

    def _role(self, tensor: int) -> str:
        return self.graph.storages[self.graph.tensors[tensor].storage].role

    def weights(self, operator: Operator) -> list[OperandTensor]:
        """The weights that an operator reads, in order."""
        return [self.graph.tensors[number] for number in operator.inputs if self._role(number) == "weight"]

    def conv(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        weights, arguments = self.weights(operator), operator.arguments
        if arguments.get("transposed") or not weights or len(weights[0].shape) != 4:
            self._refuse(operator, "not a convolution of two dimensions with weights")
        attributes = {
            "channels": weights[0].shape[0],
            "kernel": weights[0].shape[2:],
            "stride": self._pair(operator, "stride", 1),
            "pad": self._pair(operator, "padding", 0),
            "dilation": self._pair(operator, "dilation", 1),
            "groups": self._pair(operator, "groups", 1)[0],
            "bias": len(weights) > 1,
        }
        return "conv", attributes

    def fc(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        weights = self.weights(operator)
        if not weights:
            self._refuse(operator, "a product without weights: no kind of layer corresponds to it")
        features = self.graph.tensors[operator.outputs[0]].shape[-1]
        table = max(weights, key=lambda one: len(one.shape))
        tied = (table.storage, table.offset) in self.counted
        self.counted.add((table.storage, table.offset))
        biased = len(weights) > 1 or self._bias_after(operator) is not None
        return "fc", {"features": features, "bias": biased, "tied": tied}

    def embedding(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        weights = self.weights(operator)
        if not weights:
            self._refuse(operator, "looks up tokens in something other than a weight")
        self.counted.add((weights[0].storage, weights[0].offset))
        return "embedding", {"vocabulary": weights[0].shape[0], "features": weights[0].shape[1]}

    def lstm(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        weights, arguments = self.weights(operator), operator.arguments
        if arguments.get("bidirectional") or arguments.get("reverse") or arguments.get("mode") != _LSTM_MODE:
            self._refuse(operator, "a recurrent layer other than an LSTM in one direction")
        biases = sum(len(one.shape) == 1 for one in weights)
        return "lstm", {"features": weights[1].shape[1], "biases": biases}

    def product(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        """A product of two activations for each sample and head."""
        if any(self._storage(one) not in self.layers for one in operator.inputs):
            self._refuse(operator, "a product of other than two activations: no kind of layer corresponds to it")
        tensors = [self.graph.tensors[one] for one in operator.inputs]
        layers = [self.net.shape(self._seen(one)) for one in operator.inputs]
        heads, (rows, inner) = tensors[0].shape[0] // self.batch, tensors[0].shape[1:]
        plain_shape, exchanged = (inner, heads * tensors[1].shape[2]), (tensors[1].shape[2], heads * inner)
        transposed = layers[1] == exchanged
        if plain_shape == exchanged:
            transposed = layers[0] == (rows, heads * inner)
        return "matmul", {"heads": heads, "transposed": transposed}

    def attention(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        if len(operator.inputs) > len(_QUERY_KEY_VALUE):
            self._refuse(operator, "attention with a mask given as a tensor")
        made = self.graph.tensors[operator.outputs[0]]
        samples, _, tokens, _ = made.strides
        return "attention", {
            "heads": made.shape[1],
            "probability": float(operator.arguments.get("dropout_p", 0.0)),  # type: ignore[arg-type]
            "causal": bool(operator.arguments.get("is_causal", False)),
            "tokens_outside": tokens > samples,
        }

    def mask(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        shape = self.graph.tensors[operator.inputs[0]].shape
        hides = self.graph.tensors[operator.inputs[1]]
        is_buffer = self.graph.storages[hides.storage].role == "buffer"
        return "mask", {"heads": shape[1] if len(shape) == 4 else 1, "buffer": is_buffer}

    def copy(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        return "copy", {}

    def scale(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        if len(operator.inputs) > 1:
            self._refuse(operator, "a division of two feature maps: no kind of layer corresponds to it")
        return "scale", {}

    def batchnorm(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        return "batchnorm", {"affine": bool(self.weights(operator))}

    def maxpool(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        if set(self._pair(operator, "dilation", 1)) != {1}:
            self._refuse(operator, "pooling with dilation")
        return "maxpool", self._window(operator)

    def avgpool(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        return "avgpool", self._window(operator)

    def pooled(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        """Adaptive pooling, or a mean over height and width."""
        before = self.graph.tensors[operator.inputs[0]].shape
        after = self.graph.tensors[operator.outputs[0]].shape
        out = after[2:] if len(after) == 4 else (1, 1)
        if len(before) != 4 or after[:2] != before[:2] or before[2] < out[0] or before[3] < out[1]:
            self._refuse(operator, f"pooling of {before} to {after}: expected a pooling of height and width")
        if out == (1, 1):
            return "avgpool", {}
        stride = (before[2] // out[0], before[3] // out[1])
        kernel = (before[2] - (out[0] - 1) * stride[0], before[3] - (out[1] - 1) * stride[1])
        return "avgpool", {"kernel": kernel, "stride": stride}

    def add(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        looked_up = [self.tables[storage] for storage in self._storages(operator) if storage in self.tables]
        if looked_up:
            return "positions", {"rows": looked_up[0]}
        unknown = [
            one for one in operator.inputs if self._storage(one) not in self.layers and self._role(one) != "weight"
        ]
        if len(operator.inputs) == 2 and len(unknown) == 1:  # a mask that is added to scores
            shape = self.graph.tensors[operator.outputs[0]].shape
            return "mask", {"heads": shape[1] if len(shape) == 4 else 1, "buffer": True}
        if operator.arguments.get("alpha", 1) != 1 or len(operator.inputs) != 2 or self.weights(operator):
            self._refuse(operator, "a sum of something other than two feature maps")
        return "add", {}

    def concat(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        if operator.arguments.get("dim", 0) not in (1, -3):
            self._refuse(operator, "concatenation along another extent than channels")
        return "concat", {}

    def dropout(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        retained = [self.masks[s] for s in self._storages(operator) if s in self.masks]
        if not retained and len(operator.inputs) == 1:
            return "scale", {}
        if not retained:
            return "multiply", {}
        return "dropout", {"probability": round(1 - retained[0], 6)}

    def native_dropout(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        probability = operator.arguments.get("p", 0.5)
        return "dropout", {"probability": probability}

    def _pair(self, operator: Operator, name: str, default: int) -> tuple[int, int]:
        """Return height and width of an argument: one integer or two."""
        value = operator.arguments.get(name, default)
        numbers = value if isinstance(value, tuple) else (value,)
        integers = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool)]
        if len(integers) != len(numbers) or len(integers) not in (1, 2):
            self._refuse(operator, f"{name}: {shortened(value)}: expected an integer or two")
        return integers[0], integers[-1]

    def _window(self, operator: Operator) -> dict[str, Any]:
        arguments = operator.arguments
        kernel = self._pair(operator, "kernel_size", 1)
        has_stride = arguments.get("stride", ()) != ()  # without one, PyTorch records an empty list
        return {
            "kernel": kernel,
            "stride": self._pair(operator, "stride", 1) if has_stride else kernel,
            "pad": self._pair(operator, "padding", 0),
            "ceil": bool(arguments.get("ceil_mode", False)),
        }


_LSTM_MODE = 2
_QUERY_KEY_VALUE = ("query", "key", "value")

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
    "mul_": _Reader.dropout,
    "div": _Reader.scale,
    "clone": _Reader.copy,
    "masked_fill": _Reader.mask,
    "bmm": _Reader.product,
    "embedding": _Reader.embedding,
    "mkldnn_rnn_layer": _Reader.lstm,
    "_scaled_dot_product_flash_attention_for_cpu": _Reader.attention,
    "_scaled_dot_product_flash_attention": _Reader.attention,
    "_scaled_dot_product_efficient_attention": _Reader.attention,
    "_scaled_dot_product_cudnn_attention": _Reader.attention,
    "native_dropout": _Reader.native_dropout,
}
