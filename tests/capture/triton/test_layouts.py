"""The lanes of an access together access the bytes of its elements, no more and no fewer, whatever layout or loop."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
pytest.importorskip("triton", reason="Triton isn't installed: pip install triton==3.9.0")

import torch

from buddysim.capture.triton_kernels import capture
from buddysim.capture.triton_kernels.launch_records import LaunchRecords
from buddysim.trace import open_trace
from tests.capture.triton.layout_kernels import launches


def bytes_at(addresses: npt.NDArray[np.uint64], width: int) -> npt.NDArray[np.uint64]:
    return np.unique(addresses[:, None] + np.arange(width, dtype=np.uint64))


def check(name: str, machine: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    original = LaunchRecords._expanded

    def expanded(self: LaunchRecords, programs: Any, access: int, event: int) -> Any:
        addresses, active = original(self, programs, access, event)
        size = self._kernel.accesses[access].layout.element_bytes
        for number, program in enumerate(programs):
            accessed = bytes_at(addresses[number][active[number]], self._lanes[access].bytes_per_lane)
            mask = program.masks[event]
            of_program = program.addresses[event] if mask is None else program.addresses[event][mask]
            expected, _ = self._memory.translate(of_program, np.ones(len(of_program), np.bool_))
            assert np.array_equal(accessed, bytes_at(expected, size))
            seen.append((program.block, event))
        return addresses, active

    monkeypatch.setattr(LaunchRecords, "_expanded", expanded)
    programs: list[tuple[int, int]] = []
    batch = LaunchRecords._batch

    def of_batch(self: LaunchRecords, its_programs: Any, key: Any) -> Any:
        programs.extend((each.block, event) for each in its_programs for event in range(len(each.positions)))
        return batch(self, its_programs, key)

    monkeypatch.setattr(LaunchRecords, "_batch", of_batch)
    kernel, grid, arguments = launches()[name]
    with capture(folder / "out.bin", machine=machine, snapshots=0):
        kernel[grid](**arguments)
    assert sorted(seen) == sorted(programs)  # nothing is dropped or counted twice
    assert seen


@pytest.mark.parametrize("name", ["nested", "descriptor"])
def test_bytes_of_an_access(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, "h100-sxm", tmp_path, monkeypatch)


#: Kernels whose machine code for Ampere has other instructions: no descriptors, products of registers, no wide atomics.
AMPERE = ("descriptor",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "machine"), [(name, "h100-sxm") for name in launches()] + [(name, "a100-80") for name in AMPERE]
)
def test_bytes_of_every_access(name: str, machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, machine, tmp_path, monkeypatch)


SOURCE = """
import triton
import triton.language as tl


@triton.jit
def copy(x, o):
    at = tl.arange(0, 32)
    tl.store(o + at, tl.load(x + at))
"""


def test_one_source_in_two_files(tmp_path: Path) -> None:
    """Triton's cache would give the second kernel the positions of the first one's file."""
    for name in ("first", "second"):
        file = tmp_path / f"{name}.py"
        file.write_text(SOURCE)
        kernel = runpy.run_path(str(file))["copy"]
        with capture(tmp_path / f"{name}.bin", snapshots=0):
            kernel[(1,)](torch.zeros(32), torch.ones(32))
        with open_trace(tmp_path / f"{name}.bin") as trace:
            assert trace.kernels[0].memory_instructions == 5  # a load of each of four warps, a store of one
