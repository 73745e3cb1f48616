"""Simulate a codec: capture a run of its program and replay it on machines, kernel by kernel."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import CodecSample
from buddysim.machine import Machine
from buddysim.replay import simulate

#: Stage of a kernel, by the first part of its name.
STAGES = {"sizes": "encode", "scan": "sums", "scatter": "encode", "gather": "decode"}


@dataclass(frozen=True)
class CodecExperiment:
    """A tensor, a codec and the launches to simulate."""

    codec: str
    layout: str
    byte_count: int
    sparsity: float
    launches: tuple[LaunchShape, ...]


def simulate_codec(experiment: CodecExperiment, machines: Sequence[str]) -> list[CodecSample]:
    """Run an experiment once and replay it on each machine.

    Raises
    ------
    BuddysimError
        if OpenCL is missing, or the program fails because its payload differs from the package's compressor's
    """
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "codec.bin"
        payload_bytes = _captured(experiment, trace)
        samples = []
        for machine in machines:
            result = simulate(str(trace), machine=Machine.load(machine), scheme="ideal")
            times = [(str(row["name"]), int(str(row["time_ps"]))) for row in result.per_kernel]
            samples += _samples(experiment, machine, payload_bytes, times)
    return samples


def _captured(experiment: CodecExperiment, trace: Path) -> int:
    """Capture the program; return the bytes of the payload."""
    what = (experiment.codec, experiment.layout, experiment.byte_count, experiment.sparsity)
    launches = (f"{launch.grid}:{launch.block}" for launch in experiment.launches)
    program = [sys.executable, "-m", "buddysim.gpu_codecs.warp_program", *map(str, what), *launches]
    capture = [sys.executable, "-m", "buddysim", "capture", "opencl", "--snapshots", "1", "--contents-every", "0"]
    run = subprocess.run([*capture, "-o", str(trace), "--", *program], capture_output=True, text=True, check=False)
    if run.returncode:
        problem = run.stderr.strip().splitlines()[-1:] or ["no message"]
        raise BuddysimError(f"{experiment.codec}: capture failed with exit code {run.returncode}: {problem[0]}")
    return int(run.stdout.split()[0])


def _samples(
    experiment: CodecExperiment, machine: str, payload_bytes: int, times: list[tuple[str, int]]
) -> list[CodecSample]:
    each, rest = divmod(len(times), len(experiment.launches))
    if rest:
        raise BuddysimError(f"{experiment.codec}: {len(times)} kernels: expected the same number for each launch")
    samples = []
    for number, launch in enumerate(experiment.launches):
        spent = {"encode": 0, "sums": 0, "decode": 0}
        for name, time_ps in times[number * each : (number + 1) * each]:
            spent[STAGES[name.partition("_")[0]]] += time_ps
        what = (machine, experiment.codec, experiment.layout, launch.grid, launch.block)
        tensor = (experiment.byte_count, experiment.sparsity, payload_bytes)
        samples.append(CodecSample(*what, *tensor, spent["encode"], spent["sums"], spent["decode"]))
    return samples
