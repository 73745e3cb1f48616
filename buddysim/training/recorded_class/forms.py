"""What an operator is called with, what it does and what it returns, without memory."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.records import TracedOperation

if TYPE_CHECKING:
    from buddysim.training.recorded_class.call_recorder import CallRecorder


class Form(NamedTuple):
    """What of a tensor decides what an operator does; `number`: equal for one that is given twice."""

    shape: Shape
    strides: Shape
    dtype: DType
    needs_gradient: bool
    number: int


class Part(NamedTuple):
    """A tensor: its storage among an operator's, and where it lies there."""

    storage: int
    offset: int
    shape: Shape
    strides: Shape
    dtype: DType
    producer: str
    is_view: bool


class Allocated(NamedTuple):
    storage: int
    bytes: int
    producer: str


class Launched(NamedTuple):
    operation: TracedOperation


class Freed(NamedTuple):
    storage: int


class Saved(NamedTuple):
    """A node saves a tensor; `argument`: which one of the operator's it is, None for another one."""

    node: int
    name: str
    part: Part
    argument: int | None


Event = Allocated | Launched | Freed | Saved


@dataclass(slots=True)
class Result:
    """What an operator returns.

    Attributes
    ----------
    argument : which one it is; None for a tensor of its own
    node, output : of the graph
    """

    part: Part
    argument: int | None
    node: int | None
    output: int


@dataclass(slots=True)
class AutogradNode:
    """A node of PyTorch's graph.

    Attributes
    ----------
    edges : arguments, or nodes with the number of an output, by the position of the gradient
    outputs : shape and type of each
    saved : storages of what it saves, in order
    formulas : what it does with gradients of some forms
    """

    name: str
    function: Any
    edges: list[tuple[bool, int, int] | None]
    outputs: list[tuple[Shape, DType]]
    saved: list[int] = field(default_factory=list)
    formulas: dict[Hashable, FormulaEffects] = field(default_factory=dict)


@dataclass(slots=True)
class FormulaEffects:
    """What happens, and what is returned: a tensor, the number of a gradient, or nothing.

    Attributes
    ----------
    views : operators without a kernel behind the last one with one
    """

    events: list[Event]
    views: int
    results: list[Part | int | None]


@dataclass(slots=True)
class Call:
    """An operator with arguments of some forms.

    Attributes
    ----------
    arguments : the storage of each
    nodes : in the order in which autograd makes them
    """

    recorder: CallRecorder
    arguments: list[int]
    events: list[Event]
    views: int
    results: list[Result]
    nodes: list[AutogradNode]


class InView(NamedTuple):
    """An operator that changes a part of its first argument, which autograd follows: a view of it."""

    operator: Any
    shape: Shape
    strides: Shape
    offset: int

    def name(self) -> str:
        """Return the operator's name."""
        return str(self.operator.name())


@dataclass(frozen=True)
class FunctionOperator:
    """A ``torch.autograd.Function`` as an operator."""

    cls: Any

    def __call__(self, *args: Any) -> Any:
        return self.cls.apply(*args)

    def name(self) -> str:
        """Return the name of its class."""
        return str(self.cls.__name__)


def changes_arguments(operator: Any) -> bool:
    """Whether an operator writes into one of its arguments."""
    if isinstance(operator, FunctionOperator):
        return False
    return any(one.alias_info is not None and one.alias_info.is_write for one in operator._schema.arguments)
