"""Declaration of a kind of layer: inputs, output shape, cost, and the feature maps that its backward step reads.

`buddysim.training.networks.kinds` has the kinds; nothing else says what one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from buddysim.training.networks.graph import Conv, Gemm, Layer, Pooling, Shape

LARGEST = 2**31 - 1

Inputs = tuple[Shape, ...]
#: Values of a layer's attributes, by name.
Attributes = Mapping[str, Any]
#: From the elements of one input, those of the output, both of one sample, and the number of inputs to the elements
#: that the forward and the backward step read and write.
Moves = Callable[[int, int, int], tuple[float, float]]


class ShapeMismatch(ValueError):
    """A layer that cannot take the shapes of its inputs, with the expected and the actual shape."""

    def __init__(self, expected: str, actual: object) -> None:
        super().__init__(f"expected {expected}, found {actual}")


@dataclass(frozen=True)
class Attribute:
    """A key that layers of a kind have.

    Attributes
    ----------
    type : ``"count"`` (1 or more), ``"size"`` (0 or more), ``"pair"`` and ``"padding"`` (one number, or height and
        width, of counts and of sizes), ``"flag"``, ``"fraction"`` (0 or more, below 1), ``"shape"`` (extents)
    default : None: a layer has to have it, unless it is `optional`
    """

    type: Literal["count", "size", "pair", "padding", "flag", "fraction", "shape"]
    meaning: str
    default: Any = None
    optional: bool = False


@dataclass(frozen=True)
class LayerProperties:
    """Properties of a layer that follow from its inputs and attributes; of one sample, see `graph.Layer`."""

    output_shape: Shape
    parameters: int = 0
    flops: int = 0
    conv: Conv | None = None
    gemms: tuple[Gemm, ...] = ()
    pool: Pooling | None = None
    saved_sample_bytes: int = 0
    saved_fixed_bytes: int = 0


@dataclass(frozen=True)
class TorchNames:
    """Names under which PyTorch has a kind that needs no attributes.

    Attributes
    ----------
    modules : classes of ``torch.nn``
    functions : functions, and methods of tensors
    operators : of the ATen library, as a captured operator graph names them (`Operator.short_name`)
    """

    modules: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()


def per_output(forward: float, backward: float) -> Moves:
    """So many elements read and written for each element of the output."""

    def moves(x: int, y: int, inputs: int) -> tuple[float, float]:
        return forward * y, backward * y

    return moves


#: Forward x is read and y written; backward y and dy are read and dx is written.
READS_X_WRITES_Y = per_output(2, 3)


Device = Literal["cuda", "cpu"]


@dataclass(frozen=True)
class AutogradSaved:
    """Tensors that PyTorch's autograd saves for the backward step of a layer; of one sample unless stated otherwise.

    Attributes
    ----------
    inputs : positions of the inputs that it saves
    output : whether it saves its output
    map_elements : elements that are as wide as those of feature maps: copies of its inputs, inner results
    sample_bytes, fixed_bytes : masks, indices, statistics, for each sample, and once for any batch
    weights : elements of parameters and of a module's buffers
    weights_for_dx : elements of parameters that are saved only if the gradient of the input is computed
    """

    inputs: tuple[int, ...] = ()
    output: bool = False
    map_elements: int = 0
    sample_bytes: int = 0
    fixed_bytes: int = 0
    weights: int = 0
    weights_for_dx: int = 0


#: From a layer, the shapes of its inputs and the device to the tensors that PyTorch's autograd saves.
SavedRule = Callable[[Layer, Inputs, Device], AutogradSaved]


def as_needed(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """The tensors that its backward step reads, as declared, and the state that its forward step saves."""
    return AutogradSaved(
        tuple(range(len(inputs))) if "x" in layer.backward_reads else (),
        "y" in layer.backward_reads,
        sample_bytes=layer.saved_sample_bytes,
        fixed_bytes=layer.saved_fixed_bytes,
    )


#: Zeros of a kind's output, as far as compressing feature maps goes (see `LayerKind.zeros`).
Zeros = Literal["none", "makes", "pools", "keeps", "drops", "pads", "joins"]


@dataclass(frozen=True)
class LayerKind:
    """A kind of layer.

    Attributes
    ----------
    summary : its function, in a line
    backward_reads : the tensors that its backward step reads
    infer : from the shapes of its inputs and its attributes to its facts; raises `ShapeMismatch`
    min_inputs, max_inputs : how many layers it reads; None: any number
    runs_in_place : ``"never"``, ``"elementwise"`` (over its input, if no other layer needs it), ``"view"`` (the same
    bytes
        with another shape)
    keeps_sign : its output is zero or has the sign of its input, element by element
    reads_zeros : its backward step asks of y only where it is zero, so that a layer that keeps signs may overwrite y
    classifier : its part in the layers that close a network: ``"outside"`` (none: the classifier starts behind it),
        ``"between"`` (may stand between fully connected layers), ``"before"`` (may stand before the first of them as
        well), ``"dense"`` (is one of them), ``"loss"`` (nothing has to read its output)
    zeros : of its output: ``"none"``, or as training makes them (``"makes"``); else of its input: as a pooling window
        leaves them (``"pools"``), all (``"keeps"``), more by the attribute ``probability`` (``"drops"``), more by added
        channels (``"pads"``), of all inputs by size (``"joins"``)
    moves : least elements that it reads and writes; None: a layer of matrix products, whose operands count
    recurrent : its products run in sequence, each on the result of the one before
    fused : its two products are one kernel whose intermediate values never reach device memory; its backward step
    computes
        the first product again
    reads_numbers : its input are numbers of tokens, 8 bytes each
    saves : the tensors that PyTorch's autograd saves, if they differ from `backward_reads`
    torch : its names in PyTorch, where it needs no attributes
    """

    name: str
    summary: str
    backward_reads: frozenset[str]
    infer: Callable[[Inputs, Attributes], LayerProperties]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    min_inputs: int = 1
    max_inputs: int | None = 1
    runs_in_place: Literal["never", "elementwise", "view"] = "never"
    keeps_sign: bool = False
    reads_zeros: bool = False
    classifier: Literal["outside", "between", "before", "dense", "loss"] = "outside"
    zeros: Zeros = "none"
    moves: Moves | None = READS_X_WRITES_Y
    recurrent: bool = False
    fused: bool = False
    reads_numbers: bool = False
    saves: SavedRule = as_needed
    torch: TorchNames = TorchNames()

    def parameters(self) -> list[tuple[str, str, str]]:
        """Name, default and meaning of each attribute, for lists."""
        rows = []
        for name, attribute in self.attributes.items():
            missing = "optional" if attribute.optional else "required"
            rows.append((name, missing if attribute.default is None else str(attribute.default), attribute.meaning))
        return rows


def elements(shape: Shape) -> int:
    """Elements of one sample."""
    product = 1
    for extent in shape:
        product *= extent
    return product


def shape_text(shape: Shape) -> str:
    """``64x224x224``."""
    return "x".join(map(str, shape))


def image(shape: Shape) -> tuple[int, int, int]:
    """The shape as channels, height and width."""
    if len(shape) != 3:
        raise ShapeMismatch("an input of channels x height x width", shape_text(shape))
    return shape[0], shape[1], shape[2]


def tokens(shape: Shape) -> tuple[int, int]:
    """The shape as tokens and features."""
    if len(shape) != 2:
        raise ShapeMismatch("an input of tokens x features", shape_text(shape))
    return shape[0], shape[1]


def one_value_each(per_element_flops: int) -> Callable[[Inputs, Attributes], LayerProperties]:
    """The rule of a layer that computes one element from each element, at a fixed number of FLOPs."""

    def infer(inputs: Inputs, attributes: Attributes) -> LayerProperties:
        return LayerProperties(inputs[0], flops=per_element_flops * elements(inputs[0]))

    return infer


def window_steps(extent: int, kernel: int, stride: int, pad: int, dilation: int = 1, ceil: bool = False) -> int:
    """Return the number of positions of a window along one axis; 0 if it does not fit.

    With `ceil` the last window may extend beyond the end, but it must begin before the end of the input or of the
    leading padding (Caffe's and PyTorch's rule).
    """
    span = extent + 2 * pad - dilation * (kernel - 1) - 1
    if span < 0:
        return 0
    steps = (-(-span // stride) if ceil else span // stride) + 1
    if ceil and (steps - 1) * stride >= extent + pad:
        steps -= 1
    return steps
