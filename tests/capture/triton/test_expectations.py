"""Sectors of each access of E1 to E11, as counted by hand, in the trace; values are those of the interpreter alone."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
pytest.importorskip("triton", reason="Triton isn't installed: pip install triton==3.9.0")

import torch

from buddysim.capture.triton_kernels import capture
from buddysim.trace import open_trace, verify_trace
from tests.capture.triton.expected_kernels import launches
from tests.capture.triton.program_accesses import accesses_of

NAMES = sorted(launches(), key=lambda name: int(name[1:]))
QUICK = ("E1", "E7", "E10")
#: Products and atomics, whose machine code for Ampere has other instructions.
AMPERE = ("E6", "E11")


def check(name: str, machine: str, folder: Path) -> None:
    launch = launches()[name]
    output = folder / f"{name}.bin"
    with capture(output, machine=machine, snapshots=2):
        launch.kernel[launch.grid](**launch.arguments, **launch.options)
    assert accesses_of(output, 0, launch.block) == launch.accesses
    with open_trace(output) as trace:
        verify_trace(trace)
        last = trace.snapshots[-1]
        for allocation in trace.allocations:
            tensor = launch.arguments[allocation.name.rpartition(".")[2]]
            stored = last.read(allocation.index)[1]
            storage = torch.tensor([], dtype=torch.uint8).set_(tensor.untyped_storage())
            assert stored.tobytes() == storage.numpy().tobytes()


@pytest.mark.parametrize("name", QUICK)
def test_sectors_are_those_counted_by_hand(name: str, tmp_path: Path) -> None:
    check(name, "h100-sxm", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "machine"),
    [(name, "h100-sxm") for name in NAMES if name not in QUICK] + [(name, "a100-80") for name in AMPERE],
)
def test_sectors_of_every_kernel(name: str, machine: str, tmp_path: Path) -> None:
    check(name, machine, tmp_path)
