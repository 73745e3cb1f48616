"""Fitted constants of operators: one TOML file for each GPU with timings, and one for all GPUs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import AfterValidator

from buddysim.base.schema import checked_json
from buddysim.base.textfile import parse_toml, toml_text
from buddysim.training.cost.operators.attention import AttentionConstants
from buddysim.training.cost.operators.constant_values import STRICT, Amount, Rate
from buddysim.training.cost.operators.memory_bound import MemoryConstants
from buddysim.training.cost.operators.products import ProductConstants
from buddysim.training.networks.recorded.work import Launcher

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORMAT = 1
SHARED = "shared"
OPERATOR_PARTS = ("products", "attention", "memory", "experts", "attention_backward", "launch_us")
"""Keys of a file of constants of operators; one of them tells it from a calibration of layers."""

_DATA = resources.files("buddysim.training.cost") / "data" / "operators"
_TILES = ("tiles", "batched_tiles")


@dataclass(frozen=True)
class ExpertConstants:
    """Constants of a kernel of grouped products, and of a whole layer of experts around it.

    Attributes
    ----------
    computing : time of a grouped product over that of the plain one of its size, where computing bounds it
    moving : the same where device memory bounds it
    activations : time of the feature maps' bytes over that of one element-wise kernel
    floor_us : of a layer, whose other kernels sort, activate and add, in microseconds
    """

    __pydantic_config__ = STRICT

    computing: Rate
    moving: Rate
    activations: Rate
    floor_us: Amount

    def grouped(self, products: ProductConstants) -> ProductConstants:
        """Return the constants of grouped products from those of plain ones."""
        rate, bandwidth = products.peak_fraction / self.computing, products.bandwidth / self.moving
        return replace(products, peak_fraction=rate, bandwidth=bandwidth)


def _of_launchers(launch_us: Mapping[str, float]) -> Mapping[str, float]:
    if not launch_us.keys() <= set(get_args(Launcher)):
        raise ValueError(f"names among {', '.join(get_args(Launcher))}")
    return launch_us


@dataclass(frozen=True)
class OperatorConstants:
    """Constants of one GPU; what no row of it measured is empty.

    Attributes
    ----------
    products : by number format
    attention : by version of the kernel
    memory : of kernels that memory bounds
    experts : by kernel
    calls_us : the host's part of a call, in microseconds, that rows measured between events have in them, by kind and
        letter of the source, as ``softmax_n``
    source : letters of the sources of the rows behind each part, by part
    attention_backward : rate of the backward kernel of attention over that of the forward one; None without rows
    launch_us : the host's time to launch an operator, in microseconds, by launcher, where it was measured
    """

    __pydantic_config__ = STRICT

    machine: str
    products: Mapping[str, ProductConstants] = field(default_factory=dict)
    attention: Mapping[str, AttentionConstants] = field(default_factory=dict)
    memory: MemoryConstants | None = None
    experts: Mapping[str, ExpertConstants] = field(default_factory=dict)
    calls_us: Mapping[str, Amount] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    attention_backward: Rate | None = None
    launch_us: Annotated[Mapping[str, Amount], AfterValidator(_of_launchers)] = field(default_factory=dict)

    def over(self, other: OperatorConstants) -> OperatorConstants:
        """Return these constants, and those of `other` where they have none."""
        return OperatorConstants(
            self.machine,
            products={**other.products, **self.products},
            attention={**other.attention, **self.attention},
            memory=self.memory or other.memory,
            experts=self.experts or other.experts,
            calls_us={**other.calls_us, **self.calls_us},
            source={**other.source, **self.source},
            attention_backward=other.attention_backward if self.attention_backward is None else self.attention_backward,
            launch_us={**other.launch_us, **self.launch_us},
        )

    def to_toml(self) -> str:
        """Return the text of its file."""
        content: dict[str, Any] = {"format": FORMAT, "machine": self.machine}
        if self.attention_backward is not None:
            content["attention_backward"] = self.attention_backward
        if self.launch_us:
            content["launch_us"] = dict(self.launch_us)
        content["calls_us"], content["source"] = dict(self.calls_us), dict(self.source)
        if self.memory is not None:
            content["memory"] = asdict(self.memory)
        content["products"] = {name: _product_table(one) for name, one in self.products.items()}
        content["experts"] = {name: asdict(one) for name, one in self.experts.items()}
        content["attention"] = {
            name: {**asdict(one), "peak_fraction": {str(size): part for size, part in one.peak_fraction.items()}}
            for name, one in self.attention.items()
        }
        return toml_text(content)


def _product_table(constants: ProductConstants) -> dict[str, Any]:
    table = asdict(constants)
    for key in _TILES:
        names = table.pop(key)
        if names:
            table[key] = list(names)
    return table


def parse_constants(text: str, where: str) -> OperatorConstants:
    """Parse the text of a GPU's file.

    Raises
    ------
    BuddysimError
        a text that is no TOML, or has other keys or values
    """
    content = parse_toml(text, where)
    content.pop("format", None)
    return checked_json(_file_type(), json.dumps(content).encode(), where)


@cache
def _file_type() -> TypeAdapter[OperatorConstants]:
    """The type of a file as JSON, in which lists are tuples and names may be numbers."""
    from pydantic import TypeAdapter

    return TypeAdapter(OperatorConstants)


@dataclass(frozen=True)
class SharedOperatorConstants:
    """Constants that hold for all GPUs: medians over those that `split.UNSHARED_GPUS` leaves.

    Attributes
    ----------
    products : values of `ProductConstants` that GPUs share, by name
    floor_us : of a kernel without work, where a GPU's rows have the host in them
    memory_sharpness, memory_cached : `MemoryConstants.sharpness` and `cached`
    memory_bandwidth : fractions by kind, of GPUs without rows of that kind
    experts : of GPUs without rows of experts
    """

    products: Mapping[str, float]
    floor_us: float
    memory_sharpness: float
    memory_cached: float
    memory_bandwidth: Mapping[str, float]
    experts: ExpertConstants

    def to_toml(self) -> str:
        """Return the text of its file."""
        return toml_text({"format": FORMAT, **asdict(self)})


@cache
def shared_constants() -> SharedOperatorConstants:
    """Load the constants that hold for all GPUs."""
    content = parse_toml((_DATA / f"{SHARED}.toml").read_text(encoding="utf-8"))
    named = {one.name: content[one.name] for one in fields(SharedOperatorConstants)}
    return SharedOperatorConstants(**{**named, "experts": ExpertConstants(**named["experts"])})


@cache
def fitted_constants() -> Mapping[str, OperatorConstants]:
    """Load the constants of all GPUs with timings, by machine."""
    by_machine = {}
    for entry in sorted(_DATA.iterdir(), key=lambda entry: entry.name):
        name = entry.name.removesuffix(".toml")
        if name not in (entry.name, SHARED):
            by_machine[name] = parse_constants(entry.read_text(encoding="utf-8"), entry.name)
    return by_machine
