"""Run jobs of `program.py`, with and without a capture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from tests.in_process import Done, run_in_process

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
ROOT = HERE.parents[2]


def needs_opencl() -> None:
    """Skip the test where OpenCL or its compiler is missing, with the packages that would help."""
    import ctypes

    from buddysim.capture.opencl.toolchain import find_toolchain

    try:
        find_toolchain()
        ctypes.CDLL("libOpenCL.so.1")
    except BuddysimError as error:
        pytest.skip(str(error))
    except OSError:
        pytest.skip("libOpenCL.so.1 is missing: apt install ocl-icd-libopencl1")


def write_job(job: Any, folder: Path) -> Path:
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    return path


def plain(job: Any, folder: Path, **environment: str) -> str:
    """Return the program's output without a capture."""
    command = [sys.executable, str(PROGRAM), str(write_job(job, folder))]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def captured(job: Any, folder: Path, *options: str, name: str = "out.bin") -> tuple[Path, Done]:
    """Capture a job; return the trace file and the completed command."""
    output = folder / name
    program = [sys.executable, PROGRAM, write_job(job, folder)]
    command = ["capture", "opencl", "-o", output, *options, "--", *program]
    return output, run_in_process(*command, folder=folder, environment=os.environ)
