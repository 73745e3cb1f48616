"""``capture triton`` as a command: output and exit code are the script's, the trace has its values, and options."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
pytest.importorskip("triton", reason="Triton isn't installed: pip install triton==3.9.0")

from buddysim.trace import Allocation, Kernel, Trace, open_trace

ROOT = Path(__file__).parents[3]
SCRIPT = """
    import hashlib, sys
    import torch, triton, triton.language as tl

    @triton.jit
    def scaled(x, o, factor, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + i, mask=i < n, other=0.0)
        tl.store(o + i, value * factor + tl.sum(value, 0), mask=i < n)

    x = torch.linspace(0, 1, 1000)
    for step in range(3):
        o = torch.zeros(1000)
        scaled[(4,)](x, o, 0.1, 1000, BLOCK=256)
        x = o
    print(hashlib.sha256(x.numpy().tobytes()).hexdigest())
    sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "scaled.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *map(str, command)]
    variables = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(words, capture_output=True, text=True, check=False, env=variables)


def capture(output: Path, script: Path, *options: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = ["-m", "buddysim", "capture", "triton", "-o", output, *options, "--", sys.executable, script, str(code)]
    return run(*command)


@pytest.mark.slow
def test_results_and_exit_code_are_those_of_the_interpreter_alone(script: Path, tmp_path: Path) -> None:
    done = capture(tmp_path / "out.bin", script, code=7)
    alone = run(script, "7", TRITON_INTERPRET="1")
    assert done.returncode == alone.returncode == 7, done.stderr + alone.stderr
    assert done.stdout == alone.stdout
    with open_trace(tmp_path / "out.bin") as trace:
        assert [kernel.launch_index for kernel in trace.kernels] == [0, 1, 2]
        assert [kernel.n_blocks for kernel in trace.kernels] == [4, 4, 4]
        assert [each.name for each in trace.allocations] == ["scaled.x", *["scaled.o"] * 3]
        assert all(each.base % 512 == 0 for each in trace.allocations)
        assert {"compute_gaps", "values", "warps"} <= trace.provenance.assumptions.keys()
        assert "exit code 7" in trace.provenance.assumptions["end"]


@pytest.mark.slow
def test_a_window_and_a_sample(script: Path, tmp_path: Path) -> None:
    options = ("--launches", "1:2", "--grid-sample", "2", "--snapshots", "2", "--contents-every", "0")
    done = capture(tmp_path / "out.bin", script, *options)
    assert done.returncode == 0, done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        (kernel,) = trace.kernels
        assert kernel.launch_index == 1
        (chunk,) = (trace.decode_chunk(reference) for reference in kernel.chunks)
        assert chunk.blocks["block"].tolist() == [0, 2]
        assert len(trace.snapshots) == 2
        assert not any(snapshot.contents for snapshot in trace.snapshots)
        maps = [(one.snapshot, one.allocation) for one in trace.size_maps]
        assert maps[:2] == [(0, 0), (0, 1)]  # of the arrays known by then
        # Python frees the first two when it next searches for cycles: before the last snapshot, or after it.
        assert maps[2:] in ([(1, 2), (1, 3)], [(1, 0), (1, 1), (1, 2), (1, 3)])
        assert "One of 2 thread blocks" in trace.provenance.assumptions["grid"]
        assert "1:2 of 3" in trace.provenance.assumptions["launches"]
        assert trace.provenance.assumptions["end"].startswith("none:")


COMPILED = """
    import torch

    def norm(x, weight, projection, heads):
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight
        return (x @ projection) * 2, heads @ heads

    x, weight = torch.linspace(-1, 1, 4096).reshape(16, 256), torch.linspace(1, 2, 256)
    projection, heads = torch.linspace(0, 1, 256 * 64).reshape(256, 64), torch.linspace(0, 1, 512).reshape(2, 16, 16)
    plain, compiled = norm(x, weight, projection, heads), torch.compile(norm)(x, weight, projection, heads)
    print(all(torch.allclose(one, other, atol=1e-4) for one, other in zip(plain, compiled)))
"""


def lines_of(trace: Trace, kernel: Kernel) -> set[int]:
    """Return the 128 B lines that a kernel accesses."""
    return {int(line) >> 8 for chunk in kernel.chunks for line in trace.decode_chunk(chunk).lines}


def lines_within(allocation: Allocation) -> set[int]:
    return set(range(allocation.base >> 7, -(-(allocation.base + allocation.bytes) >> 7)))


@pytest.mark.slow
def test_kernels_of_torch_compile(tmp_path: Path) -> None:
    script = tmp_path / "compiled.py"
    script.write_text(textwrap.dedent(COMPILED))
    done = capture(tmp_path / "out.bin", script, "--torch-compile", "--snapshots", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    with open_trace(tmp_path / "out.bin") as trace:
        kernels = {kernel.name: kernel for kernel in trace.kernels}
        assert "triton_per_fused_add_mean_mul_pow_rsqrt_0" in kernels
        assert {"mm: sgemm 32x32x8", "bmm"} < kernels.keys()
        assert sorted(kernel.launch_index for kernel in trace.kernels) == list(range(len(trace.kernels)))
        names = {each.name: each for each in trace.allocations}
        assert names["mm.in1"].bytes == 65536
        assert lines_of(trace, kernels["mm: sgemm 32x32x8"]) >= lines_within(names["mm.in1"])
        assert lines_of(trace, kernels["bmm"]) == lines_within(names["bmm.in0"]) | lines_within(names["bmm.out"])
        assert "Inductor" in trace.provenance.assumptions["torch_compile"]


def test_what_is_no_script(tmp_path: Path) -> None:
    done = run("-m", "buddysim", "capture", "triton", "-o", tmp_path / "out.bin", "--", "true", "x")
    assert done.returncode == 2
    assert "expected python SCRIPT" in done.stderr
    assert done.stderr.count("\n") == 1
