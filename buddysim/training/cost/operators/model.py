"""Time of recorded operators on one GPU, from its own constants or those of the GPU most like it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from buddysim.machine.training import TrainingMachine
from buddysim.training.cost.operators.attention import AttentionConstants, attention_seconds
from buddysim.training.cost.operators.borrowed import borrowed_products
from buddysim.training.cost.operators.constants import OperatorConstants, fitted_constants, shared_constants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.host import HOST, HostConstants
from buddysim.training.cost.operators.memory_bound import MemoryConstants, memory_seconds
from buddysim.training.cost.operators.products import ProductConstants, product_seconds
from buddysim.training.networks.recorded.work import OperationWork

PS_PER_S = 10**12

NEIGHBOURS: Mapping[str, tuple[str, ...]] = {
    "a10": ("a40",),
    "a100-40": ("a100-80", "a40", "h100-sxm"),
    "a100-80": ("a100-40", "a40", "h100-sxm"),
    "a40": ("a100-80", "a100-40"),
    "a6000": ("a40", "a100-80"),
    "b200": ("h200", "h100-sxm"),
    "gh200": ("h200", "h100-sxm"),
    "h100-96": ("h100-sxm", "b200"),
    "h100-pcie": ("h100-sxm", "b200"),
    "h100-sxm": ("h200", "b200", "a100-80"),
    "h200": ("h100-sxm", "b200"),
    "l4": ("l40s", "a40", "h100-sxm"),
    "l40s": ("l4", "a40", "a100-80"),
    "p100": ("v100",),
    "rtx-2080-ti": ("t4", "v100"),
    "rtx-3090": ("a40", "a100-80"),
    "t4": ("v100", "p100"),
    "v100": ("p100", "a100-80"),
}
"""GPUs whose constants a GPU takes where it has none of its own, most alike first: generation, then memory."""

FP32_NEIGHBOURS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("a10", "a40", "a6000", "rtx-3090"), ("h100-sxm", "l4")),
    "a100-40": ("a100-80", "v100"),
    "a100-80": ("a100-40", "v100"),
    "h100-sxm": ("l4",),
}
"""The same for products in fp32, where it differs: multiprocessors with as many lanes. Those of 64 lanes (P100, V100,
T4, A100) leave every second issue slot of a scheduler to loads, those of 128 (GA10x, Ada, Hopper) none."""

ADA = ("l40s", "l4", "a40", "a100-80")
"""Neighbours of GeForce and workstation GPUs of 2022 and later."""

OLD = ("p100", "v100")
"""Neighbours of GPUs before 2018."""

ALIKE = {"bf16": ("bf16", "fp16"), "fp16": ("fp16", "bf16"), "tf32": ("bf16", "fp16"), "fp32": ("fp32",)}
"""Number formats whose constants of products a format takes, in order: tensor cores reach the same fractions."""

FLASH2_ON_HOPPER = 0.56
"""FlashAttention 2's rate on Hopper over FlashAttention 3's: 350 of 630 TFLOP/s, forward, causal, size of head 128,
16,384 tokens (Shah et al., FlashAttention-3, 2024, Fig. 5). PyTorch's own flash kernel is version 2."""

FLASH_BACKWARD = 0.85
"""Rate of the backward kernel over that of the forward one (Dao, FlashAttention-2, 2023, Figs. 4 and 5)."""

EFFICIENT = 0.5
"""Rate of the memory-efficient kernel over FlashAttention 2's (Dao, FlashAttention-2, 2023, Fig. 4: xformers)."""

OPERATORS, PREDICTED = "timings of its operators", "predicted from"
"""What the times of operators come from."""

SAME_CHIP = (("a100-40", "a100-80"), ("h100-96", "h100-pcie", "h100-sxm", "h200", "gh200"), ("a10", "a40", "a6000"))
"""GPUs with one chip, in other numbers of multiprocessors and with other memory."""

EVERY = "a100-80"
"""The GPU with rows of every kind: whose constants count where no neighbour has any."""

_T = TypeVar("_T")


def neighbours(machine: str, number_format: str = "") -> tuple[str, ...]:
    """Return the GPUs whose constants a machine takes in turn: itself, then its neighbours.

    Parameters
    ----------
    number_format : of products; empty: other operators
    """
    own = NEIGHBOURS.get(machine)
    if number_format == "fp32":
        own = FP32_NEIGHBOURS.get(machine, own)
    if own is None:
        own = ADA if machine.startswith("rtx-") else OLD
    return tuple(dict.fromkeys((machine, *own, EVERY)))


def same_chip(machine: str, other: str) -> bool:
    """Return whether two GPUs have one chip."""
    return machine == other or any(machine in names and other in names for names in SAME_CHIP)


class OperatorModel:
    """Times of operators on one machine.

    Attributes
    ----------
    tf32 : whether products of fp32 operands run in TF32
    own : constants of a user's own timings, which go before the shipped ones
    borrowed : kinds of operator whose constants are another GPU's, as far as they were needed
    """

    def __init__(
        self,
        machine: TrainingMachine,
        tf32: bool = False,
        fitted: Mapping[str, OperatorConstants] | None = None,
        own: OperatorConstants | None = None,
    ) -> None:
        self.gpu = GpuFigures.of(machine)
        self.tf32 = tf32
        self.own = own
        self._fitted = dict(fitted_constants() if fitted is None else fitted)
        if own is not None:
            shipped = self._fitted.get(machine.name, OperatorConstants(machine.name))
            self._fitted[machine.name] = own.over(shipped)
        self._names = neighbours(machine.name)
        self._products: dict[str, ProductConstants] = {}
        self._attention: dict[str, AttentionConstants] = {}
        self.borrowed: dict[str, str] = {}
        self._times: dict[OperationWork, int] = {}

    def time_ps(self, work: OperationWork) -> int:
        """Return the time of an operator on the GPU, in picoseconds."""
        if work not in self._times:
            self._times[work] = round(self._seconds(work) * PS_PER_S)
        return self._times[work]

    def _seconds(self, work: OperationWork) -> float:
        if work.attention is not None:
            constants, rate = self.attention_constants(work.kernel), self.attention_backward if work.backward else 0.0
            return attention_seconds(constants, self.gpu, work.attention, work.number_format, rate)
        if work.products:
            return self._products_seconds(work)
        if not work.bytes:
            return self.memory_constants.floor_us / 1e6
        return memory_seconds(self.memory_constants, self.gpu, work.kind, work.bytes)

    def _products_seconds(self, work: OperationWork) -> float:
        """Seconds of products: one kernel for each size, or one of all groups with their mean of rows."""
        number_format = "tf32" if self.tf32 and work.number_format == "fp32" else work.number_format
        constants = self.product_constants(number_format)
        if not work.grouped:
            return sum(
                product_seconds(constants, self.gpu, number_format, (count, m, n, k), sustained=True)
                for m, n, k, count in work.products
            )
        count = sum(one[3] for one in work.products)
        m, n, k = (max(1, round(sum(one[axis] * one[3] for one in work.products) / count)) for axis in range(3))
        kernels = self._first("experts", lambda one: one.experts or None)
        experts = shared_constants().experts if kernels is None else next(iter(kernels.values()))
        return product_seconds(experts.grouped(constants), self.gpu, number_format, (count, m, n, k), sustained=True)

    def product_constants(self, number_format: str) -> ProductConstants:
        """Return the constants of products of a number format."""
        if number_format not in self._products:
            machine, name = self._timed(number_format)
            if machine != self.gpu.name:
                self.borrowed[f"products in {name}"] = machine
            fitted = self._fitted[machine].products[name]
            self._products[number_format] = borrowed_products(fitted, self.gpu, machine, number_format)
        return self._products[number_format]

    def origin(self, number_format: str) -> str:
        """Return the GPU whose rows are behind the constants of products of a number format."""
        return self._timed(number_format)[0]

    def _timed(self, number_format: str) -> tuple[str, str]:
        """Return the nearest GPU with rows of a number format or one alike, and which of them."""
        for machine in neighbours(self.gpu.name, number_format):
            for name in ALIKE[number_format]:
                if machine in self._fitted and name in self._fitted[machine].products:
                    return machine, name
        raise ValueError(number_format)

    def source(self, number_format: str) -> str:
        """Return what the times come from: timings of this GPU's operators, or of which other GPU's."""
        origin = self.origin(number_format)
        if self.own is not None and any(name in self.own.products for name in ALIKE[number_format]):
            return f"{OPERATORS}, fitted by buddysim calibrate"
        return OPERATORS if origin == self.gpu.name else f"{PREDICTED} {origin}"

    def attention_constants(self, kernel: str) -> AttentionConstants:
        """Return the constants of PyTorch's flash or efficient kernel."""
        if kernel not in self._attention:
            versions = self._first("attention", lambda one: one.attention or None)
            assert versions is not None
            if kernel in versions:  # a user's own, by PyTorch's name
                name, rate = kernel, 1.0
            else:
                name = "flash2" if "flash2" in versions else next(iter(versions))
                rate = 1.0 if name == "flash2" else FLASH2_ON_HOPPER
                rate *= EFFICIENT if kernel == "efficient" else 1.0
            rate *= self.gpu.rate_over(self.borrowed.get("attention", self.gpu.name))
            fractions = {size: part * rate for size, part in versions[name].peak_fraction.items()}
            self._attention[kernel] = replace(versions[name], kernel=kernel, peak_fraction=fractions)
        return self._attention[kernel]

    @property
    def attention_backward(self) -> float:
        """Return the rate of the backward kernel of attention over that of the forward one."""
        return FLASH_BACKWARD if self.own is None else self.own.attention_backward or FLASH_BACKWARD

    @cached_property
    def host(self) -> HostConstants:
        """Return the host's times, those of a user's own timings where there are any."""
        named = {} if self.own is None else {f"{name}_us": us for name, us in self.own.launch_us.items()}
        return replace(HOST, **named)

    @property
    def memory_constants(self) -> MemoryConstants:
        """Return the constants of kernels that memory bounds."""
        constants = self._first("kernels bound by memory", lambda one: one.memory)
        assert constants is not None
        return constants

    def _first(self, kind: str, part: Callable[[OperatorConstants], _T | None]) -> _T | None:
        """Return a part of the constants, of the first neighbour that has it."""
        for name in self._names:
            if name in self._fitted:
                constants = part(self._fitted[name])
                if constants is not None:
                    if name != self.gpu.name:
                        self.borrowed[kind] = name
                    return constants
        return None
