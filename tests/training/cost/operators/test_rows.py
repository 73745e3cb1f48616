"""Rows of measured operators: files that ship, the split, errors, and fits that are repeated."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine.training import TrainingMachine
from buddysim.training.calibration.gpu import fit_gpu
from buddysim.training.calibration.shipping import rows_by_gpu
from buddysim.training.cost.operators.constants import fitted_constants, shared_constants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.rows import FILES, parse_rows, read_rows
from buddysim.training.cost.operators.split import UNSHARED_GPUS, checks


def test_rows_ship_of_every_kind_and_are_under_three_megabytes() -> None:
    size = 0
    for file in FILES:
        rows = read_rows(file)
        size += sum(len(str(one.extents)) + 20 for one in rows)
        assert 0.2 < sum(one.checks for one in rows) / len(rows) < 0.3
    assert size < 3e6
    assert set(UNSHARED_GPUS) < {one.gpu for one in read_rows("products")}


def test_a_shape_is_for_checking_on_every_gpu_alike() -> None:
    by_shape: dict[tuple[int, ...], set[bool]] = {}
    for one in read_rows("attention"):
        by_shape.setdefault(one.extents, set()).add(one.checks)
    assert all(len(flags) == 1 for flags in by_shape.values())
    assert checks((1, 2, 3)) == checks([1, 2, 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu,kernel\n", "expected gpu,kind,bytes,row,source,us"),
        ("gpu,kind,bytes,row,source,us\na,norm,1,1,x,0\n", "row 2"),
        ("gpu,kind,bytes,row,source,us\na,norm,one,1,x,1\n", "row 2"),
        ("gpu,kind,bytes,row,source,us\na,norm,1,1\n", "row 2"),
        ("gpu,kind,bytes,row,source,us\na,norm,1,1,x,nan\n", "us from 0.001 to 1e"),
        ("gpu,kind,bytes,row,source,us\na,norm,1,1,x,1e-320\n", "us from 0.001 to 1e"),
        ("gpu,kind,bytes,row,source,us\na,norm,1,9999999999999999,x,1\n", "row 2"),
    ],
)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(BuddysimError, match=message):
        parse_rows(text, "memory", "mine.csv")


@pytest.mark.slow
def test_the_shipped_constants_are_those_of_the_shipped_rows() -> None:
    rows = rows_by_gpu(lambda row: not row.checks)
    for name in ("a40", "v100"):
        assert (
            fit_gpu(GpuFigures.of(TrainingMachine.load(name)), rows[name], shared_constants())
            == fitted_constants()[name]
        )
