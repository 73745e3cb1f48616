"""Buddy Compression as ``plot buddy-transformers`` found it by replays: ratios of tensors and slowdowns of kernels.

Ratios go from the target of a kind of tensors to the mean ratio of their entries, at most 4x; slowdowns from the least
to the largest of the study's GPUs and links, at the paper's threshold. What the study doesn't have, such as inputs and
temporaries, counts as 1x. An optimizer's state is all means at the low end, half squares (Adam) at the high one. A
step's slowdown lies between those of its classes of kernels; products, which have none, are taken to lie there too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from buddysim.base.textfile import read_toml
from buddysim.training.autograd.records import AllocationEvent, FreeEvent

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape

DATA: Final = Path(__file__).with_name("data") / "buddy_study.toml"
#: Kinds of the study, by kind of a recorded storage.
_TENSORS: Final = {
    "parameter": ("weights",),
    "gradient": ("gradients",),
    "activation": ("activations",),
    "optimizer": ("optimizer-mean", "optimizer-square"),
}
_FORMATS: Final = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8-e4m3"}
#: Programs of the study that a training runs; others decode.
CLASSES: Final = ("attention", "rms-norm", "adamw")


@dataclass(frozen=True)
class MeasuredRange:
    """The least and the largest value."""

    low: float
    high: float


def ratio_range(tensor: str, number_format: str) -> MeasuredRange:
    """Return the ratio of a kind of tensors in a number format; 1 where the study has none."""
    known = _study()["ratio"].get(tensor, {}).get(number_format)
    return MeasuredRange(1.0, 1.0) if known is None else MeasuredRange(*known)


def slowdown_range(kernel_class: str) -> MeasuredRange:
    """Return the fraction by which kernels of a class take longer; below 0: they are faster."""
    return MeasuredRange(*_study()["slowdown"][kernel_class])


def step_slowdown() -> MeasuredRange:
    """Return bounds of the fraction by which a training step's kernels take longer."""
    ranges = [slowdown_range(each) for each in CLASSES]
    return MeasuredRange(min(each.low for each in ranges), max(each.high for each in ranges))


def memory_ratio(amounts: dict[tuple[str, str], int]) -> MeasuredRange:
    """Return the ratio of memory that holds some bytes of each kind of recorded storage and number format.

    Parameters
    ----------
    amounts : bytes by kind of storage and name of the dtype
    """
    total = sum(amounts.values())
    largest, least = [0.0], [0.0]
    for (kind, dtype), count in amounts.items():
        ranges = [ratio_range(tensor, _FORMATS.get(dtype, "")) for tensor in _TENSORS.get(kind, ("",))]
        largest.append(count / min(each.low for each in ranges))
        least.append(fsum(count / each.high for each in ranges) / len(ranges))
    return MeasuredRange(total / fsum(largest), total / fsum(least)) if total else MeasuredRange(1.0, 1.0)


def peak_amounts(tape: Tape) -> dict[tuple[str, str], int]:
    """Return the bytes at the peak of a record, by kind of storage and name of the dtype that operators see in it."""
    live, peak = 0, 0
    now: dict[int, None] = {}
    at_peak: list[int] = []
    for event in tape.events:
        if isinstance(event, AllocationEvent):
            live += event.bytes
            now[event.storage] = None
        elif isinstance(event, FreeEvent):
            if live > peak:
                peak, at_peak = live, list(now)
            live -= event.bytes
            now.pop(event.storage, None)
    if live > peak:
        at_peak = list(now)
    formats = {operand.storage: operand.dtype.name for one in tape.operations for operand in (*one.reads, *one.writes)}
    amounts: Counter[tuple[str, str]] = Counter()
    for storage in at_peak:
        amounts[tape.storages[storage].kind, formats.get(storage, "")] += tape.storages[storage].bytes
    return dict(amounts)


@cache
def _study() -> dict[str, Any]:
    return read_toml(DATA, "Buddy's study", 1 << 20)
