"""Fits the calibrations that ship to the timings that ship: ``python -m tools.fit_cost``, ``--check`` only compares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from buddysim.base.atomic import write_whole
from buddysim.training.cost.shipping import DATA_FOLDER, fitted_files


def _save(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fit_cost", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say which files differ")
    check: bool = parser.parse_args(arguments).check
    files: Mapping[str, str] = fitted_files()
    different = []
    for name, text in files.items():
        path = DATA_FOLDER / "fitted" / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            different.append(name)
            if not check:
                write_whole(path, partial(_save, text))
    print(f"{len(files)} files, {len(different)} {'differ' if check else 'written'}: {', '.join(different) or 'none'}")
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
