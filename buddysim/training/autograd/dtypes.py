"""Types of elements, and what PyTorch makes of two that meet in one operator."""

from __future__ import annotations


class DType:
    """A type of elements; each exists once, so `is` compares.

    Attributes
    ----------
    name : PyTorch's, ``"bfloat16"``
    size : bytes of an element
    rank : category for promotion: 0 truth values, 1 integers, 2 floating point, 3 complex
    """

    __slots__ = ("name", "rank", "size")

    def __init__(self, name: str, size: int, rank: int) -> None:
        self.name, self.size, self.rank = name, size, rank
        DTYPES[name] = self

    @property
    def is_floating_point(self) -> bool:
        return self.rank == 2

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


DTYPES: dict[str, DType] = {}

bool8 = DType("bool", 1, 0)
uint8 = DType("uint8", 1, 1)
int8 = DType("int8", 1, 1)
int32 = DType("int32", 4, 1)
int64 = DType("int64", 8, 1)
uint64 = DType("uint64", 8, 1)
float16 = DType("float16", 2, 2)
bfloat16 = DType("bfloat16", 2, 2)
float32 = DType("float32", 4, 2)
float64 = DType("float64", 8, 2)
complex64 = DType("complex64", 8, 3)


def promoted(first: DType, second: DType) -> DType:
    """The type of a result of two tensors that both have extents (``torch.promote_types``)."""
    if first is second:
        return first
    if first.rank != second.rank:
        return first if first.rank > second.rank else second
    if first.size == second.size:  # the two half-precision types; signed and unsigned integers aren't mixed here
        return float32 if first.rank == 2 else first
    return first if first.size > second.size else second
