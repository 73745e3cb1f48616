"""Fit of a user's own rows of operators: to constants that go before the shipped ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import NamedTuple, get_args

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.training.calibration import fast
from buddysim.training.calibration.evaluate import errors
from buddysim.training.calibration.gpu import fit_gpu
from buddysim.training.calibration.search import DIGITS
from buddysim.training.cost.operators.attention import BLOCKS
from buddysim.training.cost.operators.constants import OperatorConstants, SharedOperatorConstants
from buddysim.training.cost.operators.figures import ELEMENT_BYTES, GpuFigures
from buddysim.training.cost.operators.rows import FILES, MeasuredOperator
from buddysim.training.networks.recorded.work import KernelKind, Launcher

MIN_ROWS = 8
"""Least rows of a number format's products, and of an attention kernel: as many as constants are fitted to them."""

UserRows = Mapping[str, Sequence[MeasuredOperator]]


def check_user_rows(rows: UserRows) -> None:
    """Refuse rows that no constants can be fitted to.

    Raises
    ------
    BuddysimError
        too few rows of a kind, an unknown name, several GPUs, or experts without products
    """
    gpus = {row.gpu for some in rows.values() for row in some}
    if len(gpus) != 1:
        raise BuddysimError(f"column gpu: {', '.join(sorted(gpus)) or 'no rows'}: expected rows of one GPU")
    known = {
        "products": ELEMENT_BYTES,
        "attention": BLOCKS,
        "attention_backward": BLOCKS,
        "memory": get_args(KernelKind),
        "launches": get_args(Launcher),
    }
    for file, some in rows.items():
        for name in dict.fromkeys(row.name for row in some):
            if file in known and name not in known[file]:
                raise BuddysimError(f"{file}: {name}: expected one of {', '.join(known[file])}")
            count = sum(row.name == name for row in some)
            if file in ("products", "attention") and count < MIN_ROWS:
                raise BuddysimError(f"{file}: {name}: {count} rows: expected at least {MIN_ROWS}")
    if rows.get("experts") and not any(row.name == "bf16" for row in rows.get("products", ())):
        raise BuddysimError("experts: no products in bf16, over which their time is taken: expected a file of products")
    if rows.get("attention_backward") and not rows.get("attention"):
        raise BuddysimError("attention_backward: no forward kernel, over which its time is taken: expected attention")


def fit_user(gpu: GpuFigures, rows: UserRows, shared: SharedOperatorConstants) -> OperatorConstants:
    """Return the constants of a GPU.

    Parameters
    ----------
    rows : by file (`rows.USER_FILES`), as `check_user_rows` accepts them
    """
    constants = fit_gpu(gpu, {file: rows.get(file, ()) for file in FILES}, shared)
    launches: dict[str, list[float]] = {}
    for row in rows.get("launches", ()):
        launches.setdefault(row.name, []).append(row.us)
    return replace(
        constants,
        attention_backward=_backward(gpu, constants, rows.get("attention_backward", ())),
        launch_us={name: round(median(some), DIGITS) for name, some in launches.items()},
    )


def _backward(gpu: GpuFigures, constants: OperatorConstants, rows: Sequence[MeasuredOperator]) -> float | None:
    """Return the rate of the backward kernel over the forward one: the median over rows of one that fits a row alone.

    The time falls with the rate, so the rate that fits a row is found by halving an interval.
    """
    rates = []
    for row in rows:
        version = constants.attention.get(row.name)
        if version is None or row.extents[4] not in version.peak_fraction:
            continue
        named = {**vars(version), "peak_fraction": version.peak_fraction[row.extents[4]]}
        extents = np.array([row.extents], dtype=float)
        low, high = 0.05, 5.0
        for _ in range(40):
            rate = (low + high) / 2
            spent = fast.attention_seconds(named, gpu, "bf16", extents, backward=rate)[0]
            low, high = (rate, high) if spent * 1e6 > row.us else (low, rate)
        rates.append(low)
    return round(median(rates), DIGITS) if rates else None


class UserError(NamedTuple):
    """Median errors of a kind of row.

    Attributes
    ----------
    seen : of rows that the constants were fitted to
    held_out : of a quarter of the shapes, which a second fit did not see; None: too few rows
    """

    file: str
    name: str
    rows: int
    seen: float
    held_out: float | None


def errors_of_user(
    gpu: GpuFigures, rows: UserRows, constants: OperatorConstants, shared: SharedOperatorConstants
) -> Iterator[UserError]:
    """Yield the errors of a user's rows, by file and name."""
    inside = {file: [row for row in some if not row.checks] for file, some in rows.items()}
    second = None
    with suppress(BuddysimError):
        check_user_rows(inside)
        second = fit_user(gpu, inside, shared)
    for file in FILES:
        for name in sorted({row.name for row in rows.get(file, ())}):
            named = [row for row in rows[file] if row.name == name]
            seen = errors(gpu, file, named, constants, {gpu.name: constants})
            outside = [row for row in named if row.checks]
            away = None if second is None or not outside else errors(gpu, file, outside, second, {gpu.name: second})
            if seen is not None:
                held_out = None if away is None else float(np.median(abs(away)))
                yield UserError(file, name, len(named), float(np.median(abs(seen))), held_out)
