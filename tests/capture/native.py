"""Programs that tests compile, run and capture."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from buddysim.trace import Trace, open_trace, verify_trace
from tests.in_process import Done, run_in_process

ROOT = Path(__file__).parents[2]
SUFFIX = {"gcc": ".c", "g++": ".cpp", "gfortran": ".f90"}


def needs(compiler: str) -> pytest.MarkDecorator:
    package = {"gcc": "gcc libc6-dev"}.get(compiler, compiler)
    missing = shutil.which(compiler) is None or shutil.which("gcc") is None
    return pytest.mark.skipif(missing, reason=f"{compiler} is missing; apt install {package}")


def compiled(folder: Path, name: str, source: str, *flags: str, compiler: str = "gcc") -> Path:
    """Compile the program of a source text."""
    path = folder / name
    text = path.with_suffix(SUFFIX[compiler])
    text.write_text(source)
    subprocess.run([compiler, "-g", "-O1", str(text), "-o", str(path), *flags], check=True, cwd=folder)
    return path


def environment(folder: Path) -> dict[str, str]:
    """Return a minimal environment; compiled libraries are cached across tests."""
    passed_on = {name: os.environ[name] for name in ("XDG_CACHE_HOME", "TMPDIR") if name in os.environ}
    home = os.environ.get("HOME", str(folder))
    return {"PATH": "/usr/bin:/bin", "HOME": home, "PYTHONPATH": str(ROOT)} | passed_on


def capture(*arguments: str | Path, folder: Path) -> Done:
    """Run ``capture memory -o out.bin``; the file must pass verification."""
    command = ("capture", "memory", "-o", "out.bin", *arguments)
    return _verified(run_in_process(*command, folder=folder, environment=environment(folder)), folder)


def capture_as_users_do(*arguments: str | Path, folder: Path, timeout_s: float = 120) -> Done:
    """Run ``capture memory -o out.bin`` in a process of its own; the file must pass verification."""
    command = [sys.executable, "-m", "buddysim", "capture", "memory", "-o", "out.bin", *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    return _verified(done, folder)


def _verified(done: Done, folder: Path) -> Done:
    assert "Traceback" not in done.stderr, done.stderr
    if (folder / "out.bin").exists():
        with open_trace(folder / "out.bin") as trace:
            verify_trace(trace)
    return done


def allocation(trace: Trace, name: str) -> int:
    """Return the index of the only allocation with a name."""
    matches = [one.index for one in trace.allocations if one.name == name]
    assert len(matches) == 1, (name, [one.name for one in trace.allocations])
    return matches[0]


def contents(trace: Trace, snapshot: int, name: str) -> npt.NDArray[np.uint8]:
    """Return all bytes of an allocation in a snapshot."""
    pages, data = trace.snapshots[snapshot].read(allocation(trace, name))
    assert pages is None
    return data


def doubles(trace: Trace, snapshot: int, name: str) -> npt.NDArray[np.float64]:
    return contents(trace, snapshot, name).view(np.float64)


def ending(trace: Trace) -> str:
    return trace.provenance.assumptions["end"]
