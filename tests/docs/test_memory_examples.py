"""The examples of a write drain and a link protocol take times computed by hand, as plug-ins and as package files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_extending import EXAMPLES, ROOT, package_with

SCRIPT = """
import json, sys
from buddysim import load_plugin
from tests.replay.mechanisms.hand import load, machine, time_of
from tests.replay.mechanisms.test_dram_writes import channel, end_ns, evict

expressions, *files = sys.argv[1:]
for file in files:
    load_plugin(file)
print(json.dumps([eval(expression) for expression in json.loads(expressions)]))
"""

DRAIN = 'end_ns(channel({{"dram__write_drain": "when_full", "dram__write_high_watermark": {}}}), evict(), {})'
READ = "(352, load((1, 2))), dirty=3"
LINK = 'machine(link__protocol="pcie", link__bandwidth="0.8 GB/s", link__write_bandwidth="{} GB/s")'
READS = '[time_of({}, [load(*range(n))], scheme="pinned-host") // 1000 for n in (1, 2, 3)]'

#: For each example, expressions and their values in ns.
BY_HAND: dict[str, dict[str, object]] = {
    "when_full": {
        # Two queued bursts of three: the read has the bus, although both are above the low watermark and the bus idle.
        DRAIN.format(3, READ): 352 + 39 + 20 + 2 + 89,
        # A full queue: written from 404 to 408, then tWTR and tCL.
        DRAIN.format(2, READ): 408 + 8 + 10 + 2 + 89,
        # Two of three are enough.
        DRAIN.format('3, "write_drain__when_full__bursts": 2', READ): 408 + 8 + 10 + 2 + 89,
    },
    "pcie": {
        # 32 B and 20 B take 65 ns from the bucket's start on; 250 ns is the rest of a read.
        READS.format(LINK.format(16)): [301, 65 + 250, 130 + 250],
        # Requests of 24 B take 300 ns each of the direction from the GPU; their data come 135 + 50 ns later.
        READS.format(LINK.format(0.08)): [51 + 300 + 185, 600 + 185, 900 + 185],
    },
}
parametrized = pytest.mark.parametrize("stem", BY_HAND)


def values(stem: str, package_parent: Path, *plugins: Path) -> dict[str, object]:
    """Return the values of an example's expressions, with the package of a folder."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package_parent), str(ROOT)])}
    expressions = list(BY_HAND[stem])
    command = [sys.executable, "-c", SCRIPT, json.dumps(expressions), *map(str, plugins)]
    done = subprocess.run(command, env=environment, cwd=package_parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(expressions, json.loads(done.stdout), strict=True))


@pytest.mark.slow
@parametrized
def test_a_plugin_takes_times_computed_by_hand(stem: str) -> None:
    example = next(example for example in EXAMPLES if example.file.stem == stem)
    assert values(stem, ROOT, example.file) == BY_HAND[stem]


@pytest.mark.slow
@parametrized
def test_a_file_of_the_package_takes_times_computed_by_hand(stem: str, tmp_path: Path) -> None:
    package_with(next(example for example in EXAMPLES if example.file.stem == stem), tmp_path)
    assert values(stem, tmp_path) == BY_HAND[stem]
