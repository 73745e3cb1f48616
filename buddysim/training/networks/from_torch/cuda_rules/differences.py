"""Every difference between what PyTorch saves on the CPU and on a CUDA GPU, as the package's table has it.

``differences.csv`` has a row for each operator and recipe. A test repeats each row on the installed PyTorch, without
`cuda_rules` and within, and looks up the line that it cites.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from buddysim.base.textfile import csv_tables

Recipe = Literal["fp32", "bf16", "autocast"]


@dataclass(frozen=True)
class DeviceDifference:
    """What one operator saves on the CPU and on a CUDA GPU.

    Attributes
    ----------
    recipe : types of inputs and weights: ``"fp32"``, ``"bf16"``, or ``"autocast"``: bf16 inputs, fp32 weights
    cpu, cuda : saved tensors, as ``NODE.NAME DTYPE SHAPE``, apart by ``"; "``; without weights
    reason : what differs
    source, line : where PyTorch 2.13 says so: of its wheel, but for ``aten/``, which is its repository
    text : of that line
    """

    operator: str
    recipe: Recipe
    cpu: str
    cuda: str
    reason: str
    source: str
    line: int
    text: str


def differences() -> tuple[DeviceDifference, ...]:
    """The rows of the table."""
    text = files(__package__).joinpath("differences.csv").read_text(encoding="utf-8")
    rows = csv_tables(text, "differences.csv")
    return tuple(DeviceDifference(**{**row, "line": int(row["line"])}) for row in rows)  # type: ignore[arg-type]
