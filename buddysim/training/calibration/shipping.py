"""Fit of the constants that ship to the rows that ship."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from buddysim.training.calibration.gpu import fit_gpu, fit_shared
from buddysim.training.cost.operators.constants import SHARED, OperatorConstants, SharedOperatorConstants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.rows import FILES, MeasuredOperator, read_rows
from buddysim.training.cost.operators.split import UNSHARED_GPUS

RowsByGpu = Mapping[str, Mapping[str, list[MeasuredOperator]]]


def rows_by_gpu(requested: Callable[[MeasuredOperator], bool]) -> RowsByGpu:
    """Return the rows that ship by GPU and file."""
    by_gpu: dict[str, dict[str, list[MeasuredOperator]]] = {}
    for file in FILES:
        for row in read_rows(file):
            if requested(row):
                by_gpu.setdefault(row.gpu, {name: [] for name in FILES})[file].append(row)
    return dict(sorted(by_gpu.items()))


def fit_all(
    gpus: Mapping[str, GpuFigures], left_out: Collection[str] = ()
) -> tuple[SharedOperatorConstants, dict[str, OperatorConstants]]:
    """Fit the shared constants, then every GPU's own.

    Parameters
    ----------
    left_out : GPUs whose rows take no part
    """
    rows = {name: some for name, some in rows_by_gpu(lambda row: not row.checks).items() if name not in left_out}
    seen = {name: gpus[name] for name in rows if name not in UNSHARED_GPUS}
    shared = fit_shared(seen, rows)
    return shared, {name: fit_gpu(gpus[name], some, shared) for name, some in rows.items()}


def fitted_texts(gpus: Mapping[str, GpuFigures]) -> dict[str, str]:
    """Return the text of every file of constants by its name."""
    shared, own = fit_all(gpus)
    return {f"{SHARED}.toml": shared.to_toml()} | {f"{name}.toml": one.to_toml() for name, one in own.items()}
