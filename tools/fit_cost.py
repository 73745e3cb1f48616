"""Fits the package's calibrations (data/fitted/ of buddysim/training/cost) to the package's timings.

python tools/fit_cost.py               writes the files that differ
python tools/fit_cost.py --check       only names them; exit code 1 if any differ
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from buddysim.base.output import write_text

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.layer_times.shipped_fit import DATA_FOLDER, fitted_files  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, and write or compare."""
    parser = argparse.ArgumentParser(prog="fit_cost.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, name the files that differ")
    check: bool = parser.parse_args(arguments).check
    files: Mapping[str, str] = fitted_files()
    different = []
    for name, text in files.items():
        path = DATA_FOLDER / "fitted" / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            different.append(name)
            if not check:
                write_text(path, text)
    print(f"{len(files)} files, {len(different)} {'differ' if check else 'written'}: {', '.join(different) or 'none'}")
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
