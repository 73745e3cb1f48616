"""What each tensor would be at twice the batch: PyTorch's own shape functions run next to the script's operators.

An operator whose inputs depend on the batch runs a second time, on tensors of the ``meta`` device, which have shapes
and no memory. What a call names as a number is doubled where shapes ask for it: a view of twice the elements, or a
tensor that is made with an extent of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import prod
from typing import Any

import torch

from buddysim.capture.torch.call_tensors import tensors_in, with_tensors

#: Operators that make a tensor of a given shape.
_FACTORIES = frozenset(
    {
        "empty", "empty_strided", "empty_permuted", "zeros", "ones", "full", "rand", "randn", "randint", "arange",
        "new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full", "normal", "scalar_tensor", "linspace",
    }
)  # fmt: skip
_VIEWS = frozenset({"view", "_unsafe_view", "_reshape_alias", "reshape"})
#: Arguments that are shapes of a tensor of the forward pass, or of the result.
_SIZES = frozenset({"size", "sizes", "input_size", "input_sizes", "self_size", "self_sizes"})
_LISTS = frozenset({"stack", "cat"})

Shape = tuple[int, ...]
#: From a tensor's number to whether it comes from outside of the iteration.
IsInput = Callable[[int], bool]


class DoubledBatch:
    """Tensors at twice the batch, by number; those that aren't there don't depend on it.

    Parameters
    ----------
    batch : samples of the script's batch
    is_input : whether a tensor comes from outside
    """

    def __init__(self, batch: int, is_input: IsInput) -> None:
        self.batch, self.is_input = batch, is_input
        self.tensors: dict[int, torch.Tensor] = {}
        self._shapes: dict[Shape, Shape] = {}
        self._assumed: set[int] = set()
        self._real: dict[int, Shape] = {}
        self._made: dict[Any, Any] = {}
        #: Operators without a shape function: their results grow where their inputs do.
        self.by_extents: set[str] = set()

    def shape_of(self, number: int) -> Shape | None:
        """The shape at twice the batch; None for that at the batch itself."""
        tensor = self.tensors.get(number)
        return None if tensor is None else tuple(tensor.shape)

    def add_input(self, number: int, tensor: torch.Tensor) -> None:
        """Note a tensor from outside: its first extent of the batch grows."""
        shape = tuple(tensor.shape)
        if self.batch in shape:
            self._hold(number, _meta(tensor, _doubled_at(shape, shape.index(self.batch))), shape)

    def add_like(self, number: int, tensor: torch.Tensor, other: int) -> None:
        """Note another view of a storage whose other view is known."""
        shape, known = tuple(tensor.shape), self.tensors[other]
        ratio = known.numel() // max(1, prod(self._real[other]))
        if ratio > 1 and 0 not in tensor.stride() and 0 not in known.stride():
            scaled = self._scaled(shape, ratio)
            self._hold(number, _meta(tensor, scaled), shape)

    def run(
        self, func: Any, args: Any, kwargs: Any, result: Any, number_of: Callable[[torch.Tensor], int]
    ) -> tuple[Any, Any, Any] | None:
        """Run an operator at twice the batch; return its arguments and result there, None where nothing changes."""
        name = func.overloadpacket.__name__
        results = list(tensors_in(result))
        numbers = [number_of(one) for one in tensors_in((args, kwargs))]
        known = [number for number in numbers if number in self.tensors]
        listed = name in _LISTS and self._lists_samples(args[0], number_of)
        made = results and (name in _FACTORIES or name == "expand")
        if not known and not listed and not made:
            return None
        if not results and not any(argument.is_out for argument in func._schema.arguments):
            return None
        if made and not known:
            shape = tuple(results[0].shape)
            shape = self._created(name, shape) if name in _FACTORIES else self._expanded(args[0], results[0])
            if shape != tuple(results[0].shape):
                number = number_of(results[0])
                meta = _meta(results[0], shape)
                if name == "expand":
                    meta = _meta(args[0], tuple(args[0].shape)).expand(shape)
                self._hold(number, meta, tuple(results[0].shape))
                self._assumed.add(number)
            return None
        if listed:
            args = ([*args[0], *args[0]], *args[1:])
        for unknown in self._attempts(known):
            doubled = self._arguments(args, kwargs, number_of, unknown)
            for changed in self._changes(func, name, *doubled, results, (args, kwargs)):
                made = self._shapes_of(func, *changed)
                if made is not None and self._note(results, made, number_of):
                    for one in unknown:
                        self.tensors.pop(one, None)
                    return (*changed, made)
        self.by_extents.add(name)
        self._note_by_extents(known, results, number_of)
        return None

    def _shapes_of(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator on tensors without memory, once for equal ones; None where shapes don't fit each other.

        Some shape functions take the formats that a GPU's kernel takes: ``_grouped_mm`` in bfloat16 alone.
        """
        key = _signature((func, args, kwargs))
        if key not in self._made:
            self._made[key] = None
            for change in (None, _in_bfloat16):
                try:
                    call = (args, kwargs) if change is None else with_tensors((args, kwargs), change)
                    with torch.no_grad():
                        self._made[key] = func(*call[0], **call[1])
                    break
                except Exception:  # an operator says so in its own way
                    continue
        return self._made[key]

    def _attempts(self, known: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Inputs to take as they are, of those whose dependence on the batch is assumed: first none."""
        assumed = [one for one in dict.fromkeys(known) if one in self._assumed]
        for count in range(min(len(assumed), 2) + 1):
            yield from combinations(assumed, count)

    def _arguments(
        self, args: Any, kwargs: Any, number_of: Callable[[torch.Tensor], int], unknown: Sequence[int]
    ) -> tuple[Any, Any]:
        def doubled(tensor: torch.Tensor) -> torch.Tensor:
            number = number_of(tensor)
            known = None if number in unknown else self.tensors.get(number)
            return _meta(tensor, tuple(tensor.shape)) if known is None else known

        args, kwargs = with_tensors((args, kwargs), doubled)
        kwargs = {name: value for name, value in kwargs.items() if name not in ("generator", "pin_memory")}
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("meta")
        return args, kwargs

    def _changes(
        self, func: Any, name: str, args: Any, kwargs: Any, results: Sequence[torch.Tensor], real: tuple[Any, Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Arguments with numbers doubled: as the kind of operator asks for, else as they are, then all of the batch.

        Parameters
        ----------
        real : the arguments of the call itself
        """
        if name in _VIEWS:
            size = self._viewed(args[0], tuple(results[0].shape))
            yield (args[0], size), {}
            return
        if name == "expand":
            yield (args[0], self._expanded(args[0], results[0])), {}
            return
        if name in ("slice", "split", "split_with_sizes", "unfold", "narrow"):
            yield from self._parts(func, args, kwargs, next(tensors_in(real)))
        named = [one.name for one in func._schema.arguments]
        by_shape = tuple(self._by_shape(one) if name in _SIZES else one for name, one in zip(named, args, strict=False))
        if any(one is not two for one, two in zip(by_shape, args, strict=True)):
            yield by_shape, kwargs
        yield args, kwargs
        of_batch = [number for number, one in enumerate(args) if type(one) is int and one == self.batch]
        for number in of_batch:  # one of them first: as many groups as samples stay as many
            yield (*args[:number], 2 * args[number], *args[number + 1 :]), kwargs
        yield tuple(2 * one if number in of_batch else one for number, one in enumerate(args)), kwargs
        yield tuple(self._all_doubled(one) for one in args), kwargs

    def _parts(self, func: Any, args: Any, kwargs: Any, whole: torch.Tensor) -> Iterator[tuple[Any, Any]]:
        named = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
        tensor = next(iter(named.values()))
        axis = named.get("dim", 0)
        extent, real = tensor.shape[axis], whole.shape[axis]
        if extent == real:
            return
        ratio = extent // real
        for key in ("start", "end", "split_size", "length"):
            value = named.get(key)
            if isinstance(value, int) and value != 0:
                named[key] = extent if value >= real else value * ratio
        if isinstance(named.get("split_sizes"), list | tuple):
            named["split_sizes"] = [one * ratio for one in named["split_sizes"]]
        yield (), named if "self" in named else {"self": tensor, **named}

    def _by_shape(self, value: Any) -> Any:
        """A list of extents that a known tensor has, at twice the batch."""
        if isinstance(value, list | tuple) and value and all(type(one) is int for one in value):
            known = self._shapes.get(tuple(value))
            return value if known is None else list(known)
        return value

    def _all_doubled(self, value: Any) -> Any:
        if type(value) is int:
            return 2 * value if value and value % self.batch == 0 else value
        if isinstance(value, list | tuple) and value and all(type(one) is int for one in value):
            return self._scaled(tuple(value), 2)
        return value

    def _viewed(self, tensor: torch.Tensor, shape: Shape) -> Shape:
        """The shape of a view of more elements: of the extents that divide into batches, the first does it."""
        return self._scaled(shape, tensor.numel() // max(1, prod(shape)))

    def _scaled(self, shape: Shape, ratio: int) -> Shape:
        """A shape of `ratio` times the elements: its first extent of the batch grows, else the first multiple."""
        known = self._shapes.get(shape)
        if known is not None and prod(known) == ratio * prod(shape):
            return known
        for fits in (lambda one: one == self.batch, lambda one: one and one % self.batch == 0, lambda one: True):
            for axis, extent in enumerate(shape):
                if ratio > 1 and fits(extent):
                    return (*shape[:axis], extent * ratio, *shape[axis + 1 :])
        return shape

    def _expanded(self, tensor: torch.Tensor, result: torch.Tensor) -> Shape:
        """The shape of an expanded tensor: one that is known and fits, else its new extents of the batch grow."""
        shape, own = list(result.shape), tuple(tensor.shape)
        offset = len(shape) - len(own)
        known = self._shapes.get(tuple(shape), ())
        if known and all(own[axis - offset] in (1, known[axis]) for axis in range(offset, len(shape))):
            return known
        for axis, extent in enumerate(shape):
            before = own[axis - offset] if axis >= offset else 1
            if before != 1:
                shape[axis] = before
            elif extent == self.batch:
                shape[axis] = 2 * extent
        return tuple(shape)

    def _created(self, name: str, shape: Shape) -> Shape:
        """The shape of a tensor that a call names: one of the batch, or whose first extent is a multiple of it."""
        if shape in self._shapes and name not in ("arange", "linspace"):
            return self._shapes[shape]
        for axis, extent in enumerate(shape):
            if extent == self.batch:
                return _doubled_at(shape, axis)
        multiple = shape and shape[0] and shape[0] % self.batch == 0 and name not in ("arange", "linspace", "full")
        return _doubled_at(shape, 0) if multiple and self.batch > 1 else shape

    def _lists_samples(self, tensors: Sequence[torch.Tensor], number_of: Callable[[torch.Tensor], int]) -> bool:
        """Whether a list has a tensor for each sample."""
        if len(tensors) != self.batch or self.batch < 2:
            return False
        numbers = [number_of(one) for one in tensors]
        return all(number not in self.tensors and self.is_input(number) for number in numbers)

    def _note(self, results: Sequence[torch.Tensor], made: Any, number_of: Callable[[torch.Tensor], int]) -> bool:
        """Note results; False where their axes aren't those of the real ones."""
        doubled = list(tensors_in(made))
        if len(doubled) < len(results) or any(
            one.dim() != two.dim() for one, two in zip(results, doubled, strict=False)
        ):
            return False
        for one, two in zip(results, doubled, strict=False):
            if two.numel() < one.numel():
                self._note_by_extents([], [one], number_of)
            elif tuple(one.shape) != tuple(two.shape) and one.numel():
                # Some shape functions return another format than the operator does in mixed precision.
                made = two if two.dtype == one.dtype else torch.empty_like(two, dtype=one.dtype)
                self._hold(number_of(one), made, tuple(one.shape))
            else:
                self.tensors.pop(number_of(one), None)
        return True

    def _note_by_extents(
        self, known: Sequence[int], results: Sequence[torch.Tensor], number_of: Callable[[torch.Tensor], int]
    ) -> None:
        """Results of an operator without a shape function: an extent grows that grows in one of its inputs."""
        growing = {
            real
            for number in known
            for real, extent in zip(self._real[number], self.tensors[number].shape, strict=True)
            if extent != real
        }
        for one in results:
            axis = next((axis for axis, extent in enumerate(one.shape) if extent in growing or not known), None)
            if axis is None and self._shapes.get(tuple(one.shape)) is None:
                axis = next((axis for axis, extent in enumerate(one.shape[:1]) if extent > 1 and known), None)
            if axis is not None:
                self._hold(number_of(one), _meta(one, _doubled_at(tuple(one.shape), axis)), tuple(one.shape))

    def _hold(self, number: int, tensor: torch.Tensor, shape: Shape) -> None:
        if number < 0:  # one that isn't recorded: sparse
            return
        self.tensors[number] = tensor
        self._real[number] = shape
        self._shapes.pop(shape, None)
        self._shapes[shape] = tuple(tensor.shape)


def _signature(value: Any) -> Any:
    """What shape functions see of arguments: shapes, strides and formats of tensors, all else as it is."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype, value.device.type
    if isinstance(value, list | tuple):
        return tuple([_signature(one) for one in value])
    if isinstance(value, dict):
        return tuple([(key, _signature(one)) for key, one in value.items()])
    return type(value), value


def _in_bfloat16(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype != torch.float32:
        return tensor
    return torch.empty_like(tensor, dtype=torch.bfloat16)


def _doubled_at(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])


def _meta(tensor: torch.Tensor, shape: Shape) -> torch.Tensor:
    """A tensor without memory, whose axes lie in memory in the order of another one's."""
    order = sorted(range(tensor.dim()), key=lambda axis: (-tensor.stride(axis), axis))
    made = torch.empty([shape[axis] for axis in order], dtype=tensor.dtype, device="meta")
    return made.permute([order.index(axis) for axis in range(tensor.dim())])
