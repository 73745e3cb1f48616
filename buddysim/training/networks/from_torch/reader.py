"""Follows a traced module, step by step."""

from __future__ import annotations

import copy
import io
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network

if TYPE_CHECKING:
    import torch
    from torch import fx, nn

    ModuleReader = Callable[["Reader", fx.Node, Any], int | None]
    FunctionReader = Callable[["Reader", fx.Node], int]

IN_PARTS = ("chunk", "split")
"""What returns parts of a feature map: the layer that they belong to stands for them until one is taken."""

BATCH = 2  # of the traced example: batch normalisation wants more than one value


class Reader:
    """Follows a traced module and adds a layer for each step.

    Parameters
    ----------
    module_readers, function_readers : what adds the layers of a step, by the module's class, by the function's name
    as_written : an activation runs in place only where the module says so
    """

    def __init__(
        self,
        module_readers: Mapping[type, ModuleReader],
        function_readers: Mapping[str, FunctionReader],
        module: nn.Module,
        input_shape: Sequence[int],
        name: str,
        as_written: bool,
    ) -> None:
        from torch import nn

        self.module_readers, self.function_readers = module_readers, function_readers
        described = type(module).__name__
        if isinstance(module, tuple(self.module_readers)):
            module = nn.Sequential(module)  # the traced module must contain the layers
        self.module = module
        self.net = NetworkBuilder(name, input_shape, "traced from a PyTorch module", described)
        self.as_written = as_written
        self.layer_of: dict[fx.Node, int] = {}
        self.parameters: dict[fx.Node, torch.Tensor | None] = {}
        self.constants: set[fx.Node] = set()
        self.tables: dict[fx.Node, int] = {}
        self.counted: set[int] = set()

    def read(self) -> Network:
        """The whole module as a network."""
        graph = self._traced()
        self.modules = dict(self.module.named_modules(remove_duplicate=False))
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                self._input(node)
            elif node.op == "get_attr":
                self.parameters[node] = self._parameter(str(node.target))
                if self.parameters[node] is None:
                    self.constants.add(node)
            elif node.op == "output" or not _is_tensor(node) or _dropped_state(node):
                continue
            elif node.op != "call_module" and all(one in self.constants for one in _tensors(node)):
                self.constants.add(node)
            else:
                self._step(node)
        network = self.net.build()
        counted = sum(parameter.numel() for parameter in self.module.parameters())
        if network.parameters != counted:
            raise BuddysimError(
                f"{network.name}: PyTorch counts {counted} parameters, the layers that were read {network.parameters}: "
                "expected every parameter to belong to one layer, and every layer to be used"
            )
        return network

    def _traced(self) -> fx.GraphModule:
        import torch
        from torch import fx
        from torch.fx.passes.shape_prop import ShapeProp

        name = self.net.name
        try:
            root = copy.deepcopy(self.module).to("meta")
            tracer = fx.Tracer()
            tracer.proxy_buffer_attributes = True  # a buffer may be cut to the number of tokens
            graph = fx.GraphModule(root, tracer.trace(root))
        except Exception as error:
            raise BuddysimError(f"{name}: torch.fx can't trace this module: {_line(error)}") from None
        shape = (BATCH, *self.net.shape(0))
        tokens = any(_reads_tokens(node, graph) for node in graph.graph.nodes)
        example = torch.zeros(shape, dtype=torch.long if tokens else torch.float32, device="meta")
        try:
            with redirect_stderr(io.StringIO()), warnings.catch_warnings(action="ignore"):  # it prints what it raises
                ShapeProp(graph).propagate(example)
        except Exception as error:
            at = next(node.name for node in graph.graph.nodes if not _was_run(node))
            reason = _line(error.__cause__ or error)
            shape_text = "x".join(map(str, self.net.shape(0)))
            raise BuddysimError(f"{name}: the module doesn't run on {shape_text}: {at}: {reason}") from None
        return graph

    def _input(self, node: fx.Node) -> None:
        if self.layer_of:
            raise BuddysimError(f"{self.net.name}: expected one input, found another: {node.name}")
        self.layer_of[node] = 0

    def _parameter(self, name: str) -> torch.Tensor | None:
        """A parameter that the module uses by itself, and not through a layer; None for what isn't one."""
        return dict(self.module.named_parameters(remove_duplicate=False)).get(name)

    def _step(self, node: fx.Node) -> None:
        if node.op == "call_method" and node.target == "expand" and node.args[0] in self.parameters:
            self.parameters[node] = self.parameters[cast("fx.Node", node.args[0])]
            return
        what, read = self._reader_of(node)
        try:
            layer = read()
        except BuddysimError:
            raise
        except Exception:  # the arguments are of a user's program: they may be anything
            self.refuse(node, f"{what} with these arguments")
        if layer is not None:
            self.layer_of[node] = layer
            if what not in IN_PARTS:
                self._check_shape(node)

    def _reader_of(self, node: fx.Node) -> tuple[str, Callable[[], int | None]]:
        """Return the target that a node calls, and its reader."""
        read: Callable[[], int | None] | None = None
        if node.op == "call_module":
            module = self.modules[str(node.target)]
            what = type(module).__name__
            readers = (one for kind, one in self.module_readers.items() if isinstance(module, kind))
            if (of_module := next(readers, None)) is not None:
                read = partial(of_module, self, node, module)
        else:
            what = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
            if what in self.function_readers:
                read = partial(self.function_readers[what], self, node)
        if read is None:
            self.refuse(node, what)
        return what, read

    def refuse(self, node: fx.Node, what: str) -> NoReturn:
        known = sorted({kind.__name__ for kind in self.module_readers} | set(self.function_readers))
        raise BuddysimError(
            f"{self.net.name}: {node.name}: {shortened(what)} can't be read: expected one of {', '.join(known)}"
        )

    def _check_shape(self, node: fx.Node) -> None:
        index, shape = self.layer_of[node], shape_of(node)
        layer_shape = self.net.shape(index)
        elements, expected = 1, 1
        for extent in shape[1:]:
            expected *= extent
        for extent in layer_shape:
            elements *= extent
        if shape[0] != BATCH or elements != expected:
            text = "x".join(map(str, shape[1:]))
            raise BuddysimError(f"{self.net.name}: {node.name}: expected {text} as in PyTorch, found {layer_shape}")

    def add(self, kind: str, node: fx.Node, inputs: Sequence[int], suffix: str = "", **attributes: Any) -> int:
        """Adds a layer under the name of a node."""
        written = attributes.pop("written_in_place", True)
        in_place = written or not self.as_written
        name = str(node.target) if node.op == "call_module" else node.name
        return self.net.add_described(kind, _unused_name(self.net, name + suffix), inputs, None, in_place, attributes)

    def inputs(self, node: fx.Node, count: int | None = None) -> list[int]:
        """The layers whose outputs a node takes, in order."""
        layers = [self.layer_of[one] for one in _tensors(node) if one in self.layer_of]
        if len(layers) != len(_tensors(node)) or (count is not None and len(layers) != count):
            self.refuse(node, f"{node.target} with something other than layers' outputs")
        return layers

    def laid_out(self, node: fx.Node, order: Sequence[int]) -> bool:
        """Whether a node's elements lie in memory in this order of its extents, contiguously."""
        shape, strides = shape_of(node), _first_meta(node).stride
        step = 1
        for extent in reversed(order):
            if shape[extent] != 1 and strides[extent] != step:
                return False
            step *= shape[extent]
        return True

    def in_order(self, node: fx.Node) -> int:
        """The layer that a node reads, behind a copy where its elements don't lie in order: products want them so."""
        (before,) = self.inputs(node, 1)
        source = _tensors(node)[0]
        rank = len(shape_of(source))
        if rank < 3 or self.laid_out(source, range(rank)):
            return before
        return self.add("copy", node, [before], suffix="/order")

    def viewed(self, node: fx.Node) -> int:
        """The layer that a view or a reordering reads, behind a copy where that can't be a view.

        The output of fused attention lies in order once its heads are moved back, whatever the trace's device does.
        """
        (before,) = self.inputs(node)
        source = _tensors(node)[0]
        if self.net.kind(before) == "attention":
            return before
        if node.target == "contiguous":
            copied = not self.laid_out(source, range(len(shape_of(source))))
        else:
            copied = self.copied_as(source, shape_of(node))
        return self.add("copy", node, [before], suffix="/order") if copied else before

    def copied_as(self, node: fx.Node, shape: tuple[int, ...]) -> bool:
        """Whether a node's elements have to be copied to be seen under a shape."""
        import torch

        meta = _first_meta(node)
        try:
            torch.empty_strided(meta.shape, meta.stride, device="meta").view(shape)
        except RuntimeError:
            return True
        return False

    def once(self, node: fx.Node, module: nn.Module) -> None:
        """Refuses a module whose parameters another step has counted."""
        if not self.first_use(*module.parameters()):
            self.refuse(node, f"{type(module).__name__} that is used twice")

    def first_use(self, *parameters: torch.Tensor | None) -> bool:
        """Whether none of these parameters was counted before."""
        identities = {id(parameter) for parameter in parameters if parameter is not None}
        fresh = not identities & self.counted
        self.counted |= identities
        return fresh


def _tensors(node: fx.Node) -> list[fx.Node]:
    from torch import fx

    nodes: list[fx.Node] = []

    def collect(value: Any) -> None:
        if isinstance(value, fx.Node):
            if _is_tensor(value) or value.op in ("placeholder", "get_attr"):
                nodes.append(value)
        elif isinstance(value, list | tuple):
            for one in value:
                collect(one)

    collect(node.args)
    collect(tuple(node.kwargs.values()))
    return nodes


def _was_run(node: fx.Node) -> bool:
    return node.op == "get_attr" or "type" in node.meta or "tensor_meta" in node.meta


def _is_tensor(node: fx.Node) -> bool:
    return node.meta.get("tensor_meta") is not None


def _dropped_state(node: fx.Node) -> bool:
    """Return whether a node only unpacks unused values, such as the states of a recurrent layer."""
    return node.target is operator.getitem and not node.users


def shape_of(node: fx.Node) -> tuple[int, ...]:
    """Return PyTorch's description of a node's output, of the first one if it has several."""
    return tuple(_first_meta(node).shape)


def _first_meta(node: fx.Node) -> Any:
    meta = node.meta["tensor_meta"]
    while not hasattr(meta, "shape"):
        meta = meta[0]
    return meta


def _reads_tokens(node: fx.Node, graph: fx.GraphModule) -> bool:
    from torch import nn

    return node.op == "call_module" and isinstance(graph.get_submodule(str(node.target)), nn.Embedding)


def _line(error: BaseException) -> str:
    return shortened(" ".join(str(error).split()), 200)[1:-1]


def _unused_name(net: NetworkBuilder, name: str) -> str:
    tried, number = name, 2
    while net.has(tried):
        tried, number = f"{name}_{number}", number + 1
    return tried
