"""A prefetcher of metadata lines equals its reference rule, to the picosecond, on random traces and machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEXT_LINE = ROOT / "docs" / "examples" / "plugins" / "next_line.pyx"

#: Prints for each case the counters that differ; the plug-in is loaded in this process alone.
COMPARE = """
import sys
from pathlib import Path
from buddysim import load_plugin
load_plugin(sys.argv[1])
from tests.reference.replay.schemes.buddy.metadata_cache import RefMetadataCache
from tests.replay.random_cases import random_case
from tests.replay.test_reference_machine import differences_in

RefMetadataCache.lines_ahead = lambda cache, number: [number + AHEAD]
for seed in range(CASES):
    case = random_case(seed, "buddy", ("simple", "banked")[seed % 2])
    case.machine["metadata_cache.prefetcher"] = "next_line"
    print(differences_in(case, Path(sys.argv[2])))
"""


def compared(ahead: int, cases: int, folder: Path) -> list[str]:
    """Return for each case what differs from a reference model that fetches the line `ahead` lines further."""
    program = COMPARE.replace("AHEAD", str(ahead)).replace("CASES", str(cases))
    command = [sys.executable, "-c", program, str(NEXT_LINE), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_next_line_is_fetched_as_in_the_reference_model(tmp_path: Path) -> None:
    outcomes = compared(1, 16, tmp_path)
    assert set(outcomes) <= {"{}", "None"}  # None: a case that is refused
    assert outcomes.count("{}") >= 12


def test_another_line_than_the_next_one_is_found_out(tmp_path: Path) -> None:
    assert any("metadata" in outcome for outcome in compared(2, 4, tmp_path))
