"""A prefetcher of metadata lines equals its reference rule, to the picosecond, on random traces and machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from buddysim.base.compiled import compiled_extension
from buddysim.base.plugin_modules import PACKAGE

ROOT = Path(__file__).parents[2]
NEXT_LINE = ROOT / "docs" / "examples" / "plugins" / "next_line.pyx"

#: Reference models by the number of lines ahead that they fetch, and their numbers of cases.
CASES = {1: 10, 2: 3}
#: Prints for each case of each the counters that differ; the plug-in is loaded in this process alone.
COMPARE = """
import sys
from pathlib import Path
from buddysim import load_plugin
load_plugin(sys.argv[1])
from tests.reference.replay.schemes.buddy.metadata_cache import RefMetadataCache
from tests.replay.random_cases import random_case
from tests.replay.test_reference_machine import differences_in

for ahead, cases in CASES.items():
    RefMetadataCache.lines_ahead = lambda cache, number: [number + ahead]
    for seed in range(cases):
        case = random_case(seed, "buddy", ("simple", "banked")[seed % 2])
        case.machine["metadata_cache.prefetcher"] = "next_line"
        print(ahead, differences_in(case, Path(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def next_line() -> Path:
    """The example of a metadata prefetcher, compiled into the cache of its user."""
    compiled_extension(NEXT_LINE, f"{PACKAGE}.{NEXT_LINE.stem}")
    return NEXT_LINE


def test_the_next_line_is_fetched_as_in_the_reference_model_and_another_is_found_out(
    next_line: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", f"CASES = {CASES}\n{COMPARE}", str(next_line), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    outcomes: dict[str, list[str]] = {"1": [], "2": []}
    for line in done.stdout.splitlines():
        ahead, outcome = line.split(maxsplit=1)
        outcomes[ahead].append(outcome)
    assert set(outcomes["1"]) <= {"{}", "None"}  # None: a case that is refused
    assert outcomes["1"].count("{}") >= 8
    assert any("metadata" in outcome for outcome in outcomes["2"])
