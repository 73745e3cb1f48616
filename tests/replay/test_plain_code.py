"""Code without vector instructions, which BUDDYSIM_SIMD=plain asks for, gives the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from buddysim.trace.shipped import shipped_trace

#: What each process prints: the paths of compressors and the sizes of some entries; eight lanes of the replay.
PATHS = """
import json
import numpy as np
from buddysim.compress import bdi, bpc, fpc, zvc
numbers = np.random.default_rng(5)
data = np.concatenate([numbers.integers(0, high, 4096, np.uint32).view(np.uint8) for high in (2, 99, 2**16, 2**31)])
sizes = [module.compressed_bits(data).tolist() for module in (bdi, bpc, fpc)]
print(json.dumps([[module.best_path() for module in (bdi, bpc, fpc, zvc)], sizes]))
"""


def printed(simd: str, *command: str) -> str:
    environment = {**os.environ, "BUDDYSIM_SIMD": simd}
    done = subprocess.run(
        [sys.executable, *command], env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout


@cache
def best_paths(simd: str) -> tuple[list[str], list[list[int]]]:
    paths, sizes = json.loads(printed(simd, "-c", PATHS))
    return paths, sizes


def test_the_variable_selects_plain_code_of_compressors() -> None:
    plain, sizes = best_paths("plain")
    assert plain == ["scalar"] * 4
    assert best_paths("")[1] == sizes
    flags = Path("/proc/cpuinfo")
    if flags.exists() and " avx2 " in flags.read_text():
        assert best_paths("")[0] == ["avx2"] * 4


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["fdtd2048", "kv-cache"])
def test_a_replay_gives_the_same_bytes(trace: str) -> None:
    schemes = "ideal,bandwidth-compression,buddy,unified-memory,pinned-host"
    command = ("-m", "buddysim", "run", str(shipped_trace(trace).path), "--scheme", schemes, "--no-sensitivity")
    vectors, plain = (json.loads(printed(simd, *command, "--json", "-")) for simd in ("", "plain"))
    for result in (*vectors.values(), *plain.values()):
        assert result
    assert vectors == plain
