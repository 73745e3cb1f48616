"""A user's script that uses every public name passes `mypy --strict`, and its values have the types that it states.

An assignment that is wrong is one: an unused comment about it would fail.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import buddysim

pytest.importorskip("mypy")

SCRIPT = """
from pathlib import Path

import buddysim
from buddysim import compress, sweep, training
from buddysim.training import Conv, Gemm, Layer, Network, NetworkBuilder, Pooling, TrainingResult, load_network

machine: buddysim.Machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"link.bandwidth": "50 GB/s"})
result: buddysim.ReplayResult = buddysim.simulate("traces/kv-cache.bin", machine=machine, scheme="buddy")
cycles: int | float = result.counters["cycles"]
several: buddysim.SchemeResults = buddysim.simulate_schemes("traces/kv-cache.bin", schemes=("buddy", "ideal"))
names: list[str] = list(several)
with buddysim.open_trace("traces/kv-cache.bin") as trace:
    path: Path = trace.path
    profile: buddysim.Profile = buddysim.profile(trace)
    targets: buddysim.Targets = profile.targets
trained: TrainingResult = buddysim.simulate_training("vgg16", batch=64, machine="titan-x", scheme="vdnn-dyn")
again: TrainingResult = training.simulate("vgg16", 64, "titan-x", "vdnn-dyn")
network: Network = load_network("vgg16")
layers: list[Layer] = list(network.layers)
kinds: tuple[type, ...] = (Conv, Gemm, Pooling)
builder: type[NetworkBuilder] = NetworkBuilder
plan = buddysim.fit("llama-3.2-1b", machine="rtx-4090", batch=1)
fits: bool = plan.fits
results = buddysim.run_sweep(grid={"trace": ["traces/kv-cache.bin"], "scheme": ["buddy"]}, workers=1)
rows: list[dict[str, object]] = [dict(row) for row in results.rows()]
for record in results:
    key: str = record.key
try:
    buddysim.load_plugin("mine.py")
except buddysim.BuddysimError as error:
    line: str = str(error)
wrong: str = result  # type: ignore[assignment]
everything = (buddysim.analyse, buddysim.diff, buddysim.plot, compress, sweep, buddysim.__version__)
"""


def strict(script: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache", str(script)]
    return subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_script_with_every_public_name_passes_mypy_strict(tmp_path: Path) -> None:
    assert all(name in SCRIPT for name in (*buddysim.__all__, *buddysim.training.__all__))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert "Success" in (done := strict(script)).stdout, done.stdout
