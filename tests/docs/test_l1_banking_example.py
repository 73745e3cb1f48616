"""The example of an L1 banking enters lines at times computed by hand, as a plug-in and as a file of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_extending import EXAMPLES, ROOT, package_with

EXAMPLE = next(example for example in EXAMPLES if example.file.stem == "half_lines")

#: Lines of a store as (entry, mask of sectors), and the cycles that they take: halves that meet in a cycle conflict.
CYCLES = {
    ((0, 1), (1, 4)): 1,  # the first half of one line, the second of another
    ((0, 1), (1, 2)): 2,  # sectors of their own, in one half
    ((0, 15), (1, 4)): 2,
    ((0, 3), (1, 12), (2, 1), (3, 8)): 2,
    ((0, 1), (1, 1), (2, 4), (3, 4)): 3,  # the third line joins the second, the fourth is alone
}

SCRIPT = f"""
import sys
from buddysim import load_plugin
from tests.replay.mechanisms.hand import machine, store, time_of

for file in sys.argv[1:]:
    load_plugin(file)
banked = machine(l1__bank_conflicts="half_lines", crossbar__request_bandwidth="1024 GB/s", l2__bandwidth="1024 GB/s")
print(*(time_of(banked, [store(*lines), store(9)]) for lines in {list(CYCLES)}))
"""


def times(package_parent: Path, *plugins: Path) -> list[int]:
    """Return the end of each store and of one of another line behind it, in ps."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package_parent), str(ROOT)])}
    command = [sys.executable, "-c", SCRIPT, *map(str, plugins)]
    done = subprocess.run(command, env=environment, cwd=package_parent, capture_output=True, text=True, check=True)
    return [int(time) for time in done.stdout.split()]


EXPECTED = [(cycles + 1 + 100) * 1000 for cycles in CYCLES.values()]


def test_a_plugin_enters_lines_as_computed_by_hand() -> None:
    assert times(ROOT, EXAMPLE.file) == EXPECTED


@pytest.mark.slow
def test_a_file_of_the_package_enters_lines_as_computed_by_hand(tmp_path: Path) -> None:
    package_with(EXAMPLE, tmp_path)
    assert times(tmp_path) == EXPECTED
