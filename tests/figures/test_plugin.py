"""A figure in a user's own file is listed and plotted like the package's figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "plugins" / "kernel_times.py"


def plot(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "buddysim", "plot", "--plugin", EXAMPLE, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_example_is_listed_and_plotted(tmp_path: Path) -> None:
    listed = plot()
    assert listed.returncode == 0, listed.stderr
    assert "kernel-times " in listed.stdout
    assert "TRACE.bin" in listed.stdout.partition("kernel-times ")[2]
    path = tmp_path / "kernels.svg"
    plotted = plot("kernel-times", ROOT / "traces" / "lud256.bin", "-o", path)
    assert plotted.returncode == 0, plotted.stderr
    written = path.read_text(encoding="utf-8")
    assert "time of each kernel function against unlimited device memory" in written
    assert all(scheme in written for scheme in ("buddy", "bandwidth-compression", "pinned-host"))


@pytest.mark.slow
def test_the_example_asks_for_its_trace(tmp_path: Path) -> None:
    refused = plot("kernel-times", "-o", tmp_path / "kernels.png")
    assert refused.returncode == 2
    assert (
        refused.stderr
        == "buddysim: error: plot kernel-times: no file: expected a trace file: plot kernel-times TRACE.bin\n"
    )
