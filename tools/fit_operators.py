"""Fits the constants of operators to the rows that ship, and writes them next to those.

python tools/fit_operators.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from buddysim.base.output import write_text
from buddysim.machine.training import TrainingMachine
from buddysim.training.calibration.shipping import fitted_texts
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.rows import FILES, read_rows

DATA = Path(__file__).parents[1] / "buddysim" / "training" / "cost" / "data" / "operators"


def main() -> int:
    """Fit every GPU with rows."""
    names = sorted({row.gpu for file in FILES for row in read_rows(file)})
    for name, text in fitted_texts({one: GpuFigures.of(TrainingMachine.load(one)) for one in names}).items():
        write_text(DATA / name, text)
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
