"""The same inputs give the same bytes of JSON, whatever the processor count, the process and its hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from buddysim.replay.schemes import REGISTRY

TRACES = Path(__file__).parents[2] / "traces"


def result_of(trace, options, processors, hash_seed):
    """Return the JSON of all schemes from a separate process."""
    command = [sys.executable, "-m", "buddysim", "run", str(TRACES / trace), "--scheme", ",".join(REGISTRY.names())]
    command += options
    ran = subprocess.run(
        [*command, "--seed", "5", "--json", "-"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    return ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trace", "options"),
    [
        ("lud256.bin", ["--kernels", "0:1"]),
        ("adamw.bin", ["--no-sensitivity"]),
    ],
    ids=["lud256.bin", "adamw.bin"],
)
def test_processors_and_hash_seeds_change_nothing(trace, options):
    every = os.sched_getaffinity(0)
    once = result_of(trace, options, every, hash_seed=1)
    assert set(json.loads(once)) == set(REGISTRY.names())
    assert result_of(trace, options, {min(every)}, hash_seed=2) == once
