"""Examples of policies give times computed by hand, as plug-ins and as files of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_extending import EXAMPLES, ROOT, package_with

BY_NAME = {example.file.stem: example for example in EXAMPLES}

#: An L1 banking. Lines of a store as (entry, mask of sectors), and the cycles that they take: one per use of a half.
HALF_LINES = {
    ((0, 1), (1, 4)): 1,  # the first half of one line, the second of another
    ((0, 1), (1, 2)): 2,  # sectors of their own, in one half
    ((0, 15), (1, 4)): 2,
    ((0, 3), (1, 12), (2, 1), (3, 8)): 2,
    ((0, 1), (1, 1), (2, 4), (3, 4)): 3,  # the third line joins the second, the fourth is alone
}
TIMES_OF_BANKING = f"""
banked = machine(l1__bank_conflicts="half_lines", crossbar__request_bandwidth="1024 GB/s", l2__bandwidth="1024 GB/s")
print(*(time_of(banked, [store(*lines), store(9)]) for lines in {list(HALF_LINES)}))
"""

#: A warp scheduler. The younger warp issues at 1 and could at 2 and 3; the older one, ready at 2, issues a load then.
TIMES_OF_SCHEDULER = """
warps = [load(0, critical_path_cycles=2)], [store(1)] * 3
print(*(time_of(machine(sm__policy=policy), *warps) for policy in ("oldest", "gto")))
"""

#: A metadata prefetcher. Each load needs the size in another metadata line before it fetches, which takes 100 ns; two
#: sectors and the decompressor take 12. After a miss the next line is there.
TIMES_OF_PREFETCHER = """
loads = [load(64 * line) for line in range(4)]
for prefetcher in ("none", "next_line"):
    serial = machine(metadata_cache__speculative_fetch=False, metadata_cache__prefetcher=prefetcher)
    print(time_of(serial, loads, scheme="buddy", regions=[(0, 256, 1, 2)], state=[0x44] * 256))
"""

#: By example: a script that prints times, and these times in ns.
EXPECTED = {
    "half_lines": (TIMES_OF_BANKING, [cycles + 1 + 100 for cycles in HALF_LINES.values()]),
    "oldest": (TIMES_OF_SCHEDULER, [2 + 200, 4 + 200]),
    "next_line": (TIMES_OF_PREFETCHER, [1 + 4 * 312, 1 + 2 * (312 + 212)]),
}

IMPORTS = """
import sys
from buddysim import load_plugin
from tests.replay.mechanisms.hand import load, machine, store, time_of

for file in sys.argv[1:]:
    load_plugin(file)
"""


def times_ns(name: str, package_parent: Path, *plugins: Path) -> list[float]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package_parent), str(ROOT)])}
    command = [sys.executable, "-c", IMPORTS + EXPECTED[name][0], *map(str, plugins)]
    done = subprocess.run(command, env=environment, cwd=package_parent, capture_output=True, text=True, check=True)
    return [int(time_ps) / 1000 for time_ps in done.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_plugin_gives_the_times_computed_by_hand(name: str) -> None:
    assert times_ns(name, ROOT, BY_NAME[name].file) == EXPECTED[name][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_of_the_package_gives_the_times_computed_by_hand(name: str, tmp_path: Path) -> None:
    package_with(BY_NAME[name], tmp_path)
    assert times_ns(name, tmp_path) == EXPECTED[name][1]
