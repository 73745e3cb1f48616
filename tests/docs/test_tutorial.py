"""The tutorial's commands, as a person would type them, where what they need is there."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from buddysim.trace import open_trace
from tests.docs.notebook_cells import cells_of
from tests.docs.test_commands import cut_or_too_wide
from tools.tutorial_notebooks import SHELL

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "capture.md"


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8").replace("\\\n", "")


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```sh (\w+)\n(.*?)^```", text(page), flags=re.MULTILINE | re.DOTALL)


def lines(kind: str, page: Path = PAGE) -> list[str]:
    return [line for name, cell in cells_of(page) if name == kind for line in cell.splitlines() if line != SHELL]


def walk(folder: Path, kind: str, page: Path = PAGE) -> list[str]:
    """Runs the commands of one part of a page in a folder that looks like a clone; gives what each printed."""
    for name in ("docs", "traces", "tests"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "out").mkdir()
    (folder / "bin").mkdir()
    (folder / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "bin" / "python").chmod(0o755)
    bare = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # a sanitizer must come first
    environment = bare | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    printed = []
    for line in lines(kind, page):
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, (line, done.stdout[-1000:], done.stderr[-2000:])
        assert "Traceback" not in done.stderr, (line, done.stderr)
        assert not cut_or_too_wide(done.stdout), line
        printed.append(done.stdout)
    return printed


def test_every_part_is_walked() -> None:
    assert {name for name, _ in blocks(PAGE)} == {"opencl", "memory", "torch"}
    commands = [line for line in text(PAGE).splitlines() if line.startswith("python ")]
    walked = [line for kind in ("opencl", "memory", "torch") for line in lines(kind)]
    assert commands == [line for line in walked if line.startswith("python ")]


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("pyopencl") is None
    or shutil.which("clang-15") is None
    or not Path("/etc/OpenCL/vendors/pocl.icd").exists(),
    reason="needs pip install pyopencl; apt install pocl-opencl-icd ocl-icd-opencl-dev clang-15",
)
def test_the_opencl_part(tmp_path: Path) -> None:
    plain, captured, *_ = walk(tmp_path, "opencl")
    assert plain == captured
    assert plain.startswith("highest ")
    with open_trace(tmp_path / "out" / "wave.bin") as trace:
        assert len(trace.kernels) == 30
        assert {one.bytes for one in trace.allocations} == {256 * 256 * 4}
    with open_trace(tmp_path / "out" / "steps.bin") as trace:
        assert [kernel.launch_index for kernel in trace.kernels] == [20, 21]
        assert len(trace.snapshots) == 12


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("xz") is None, reason="apt install gcc xz-utils")
def test_the_memory_part(tmp_path: Path) -> None:
    walk(tmp_path, "memory")
    with open_trace(tmp_path / "out" / "xz.bin") as trace:
        assert max(one.bytes for one in trace.allocations) > 64 << 20
        assert trace.kernels
    with open_trace(tmp_path / "out" / "water.bin") as trace:
        assert any(one.bytes >= 128 * 128 * 8 for one in trace.allocations)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or not Path("/usr/share/datasets/fashion-mnist").is_dir(),
    reason="needs torch; apt install dataset-fashion-mnist",
)
def test_the_torch_part(tmp_path: Path) -> None:
    walk(tmp_path, "torch")
    with open_trace(tmp_path / "out" / "fashion.bin") as trace:
        assert len(trace.snapshots) == 10
    assert (tmp_path / "out" / "fashion.maps").exists()
