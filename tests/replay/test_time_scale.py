"""A machine on which everything takes twice as long, ports' buckets too, takes exactly twice as long.

Buckets are a constant of the engine, so a copy of the sources is built with buckets of twice the length.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from buddysim.machine import Machine
from buddysim.machine.units import Bandwidth, Frequency, Time
from tests.replay.programs import random_program

ROOT = Path(__file__).parents[2]
SCHEMES = ("ideal", "bandwidth-compression", "buddy", "pinned-host", "unified-memory")

#: Small, so that everything is in short supply; of round numbers, so that halves and doubles are exact.
ROUND = {
    "clock.core": "1 GHz",
    "clock.dram": "1 GHz",
    "sm.count": 4,
    "l1.size": "6 KiB",
    "l1.mshrs": 16,
    "l2.size": "128 KiB",
    "l2.mshrs": 32,
    "metadata_cache.size": "4 KiB",
    "dram.pseudo_channel_bandwidth": "16 GB/s",
    "dram.channels": 4,
    "l2.slices": 4,
    "metadata_cache.slices": 4,
    "link.bandwidth": "16 GB/s",
    "link.header_size": "16 B",
    "um.fault_batch_latency": "4 us",
}

RUN = """
import json, sys
import buddysim
from buddysim.machine import Machine
machine = Machine.load(sys.argv[1])
for scheme in sys.argv[3:]:
    result = buddysim.simulate(sys.argv[2], machine, scheme)
    print(json.dumps([result.counters["time_ps"], [k["launch_ps"] for k in result.per_kernel]]))
"""


def slower(machine: Machine) -> Machine:
    """Return the machine at half the speed."""
    changed: dict[str, object] = {}
    for key in machine.dotted_keys():
        value = machine.value(key)
        if (isinstance(value, Time | Bandwidth) and value.clock is None) or isinstance(value, Frequency):
            changed[key] = str(scaled(value))
    return machine.with_overrides(changed)


def scaled(value: Time | Bandwidth | Frequency) -> Time | Bandwidth | Frequency:
    if isinstance(value, Time):
        return Time(value.amount * 2, value.unit)
    if isinstance(value, Bandwidth):
        return Bandwidth(value.amount / 2, value.unit)
    return Frequency(value.hz // 2)


def copy_with_longer_buckets(folder: Path) -> Path:
    """Build the package with port buckets of twice the length, without optimisation."""
    for part in ("buddysim", "build/cython", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, folder / part)
    port = folder / "buddysim" / "replay" / "primitives" / "port.pxd"
    text = port.read_text(encoding="utf-8")
    assert text.count("BUCKET_BITS = 16 ") == text.count("BUCKET_FINE = 67108864 ") == 1
    text = text.replace("BUCKET_BITS = 16 ", "BUCKET_BITS = 17 ").replace(
        "BUCKET_FINE = 67108864 ", "BUCKET_FINE = 134217728 "
    )
    port.write_text(text, encoding="utf-8")
    compiler = folder / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n', encoding="utf-8")
    compiler.chmod(0o755)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "CC": str(compiler)},
        check=True,
        capture_output=True,
    )
    return folder


def times(package: Path, machine: Machine, trace: Path, folder: Path) -> list[list[object]]:
    """Return the time and the kernels' starts of each scheme, simulated by the package in a folder."""
    path = folder / f"{machine.checksum[:12]}.toml"
    path.write_text(machine.to_toml(), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-c", RUN, str(path), str(trace), *SCHEMES]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.long
def test_half_the_speed_takes_exactly_twice_as_long(tmp_path):
    package = copy_with_longer_buckets(tmp_path / "package")
    machine = Machine.load("p100-nvlink2").with_overrides(ROUND)
    for seed, model in enumerate(("banked", "simple", "banked")):
        trace = random_program(seed).write(tmp_path / f"{seed}.bin")
        fast = machine.with_overrides({"dram.model": model})
        expected = times(ROOT, fast, trace, tmp_path)
        measured = times(package, slower(fast), trace, tmp_path)
        assert len(measured) == len(SCHEMES)
        assert measured == [[2 * time, [2 * start for start in starts]] for time, starts in expected]  # type: ignore[operator]
