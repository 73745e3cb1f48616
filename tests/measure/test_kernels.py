"""The CUDA kernels, run on the CPU, do what their synthetic workloads describe; NVRTC compiles them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from buddysim.measure.gpu import chase_words

SOURCE = resources.files("buddysim.measure") / "kernels.cu"

#: CUDA's words for one thread at a time; barriers hold nobody, as no kernel passes data between threads.
SHIM = """
#include <cstddef>
#define __global__
#define __device__
struct Three { unsigned x, y, z; };
static Three threadIdx, blockIdx, blockDim;
static long long ticks;
static long long clock64() { return ++ticks; }
static void __syncthreads() {}
"""
LAUNCH = """
#define EACH(gx, gy, bx, by, call) \\
    blockDim = {bx, by, 1}; \\
    for (blockIdx.y = 0; blockIdx.y < gy; ++blockIdx.y) for (blockIdx.x = 0; blockIdx.x < gx; ++blockIdx.x) \\
    for (threadIdx.y = 0; threadIdx.y < by; ++threadIdx.y) for (threadIdx.x = 0; threadIdx.x < bx; ++threadIdx.x) call
extern "C" {
void run_chase(const unsigned long long *first, long long warm, long long hops, unsigned long long *result)
{ EACH(1, 1, 32, 1, chase(first, warm, hops, result)); }
void run_sm_loads(unsigned blocks, unsigned threads, const float *set, unsigned lines, long long loads, float *sums)
{ EACH(blocks, 1, threads, 1, sm_loads(set, lines, loads, sums)); }
void run_l2_loads(unsigned blocks, const double *set, unsigned chunks, double *sums)
{ EACH(blocks, 1, 1024, 1, l2_loads(set, chunks, sums)); }
void run_l1_strides(const float *array, unsigned stride, long long rounds, float *sums, long long *cycles)
{ EACH(1, 1, 1024, 1, l1_strides(array, stride, rounds, 0, sums, cycles)); }
#define STREAMED(op) \\
void run_stream_##op(unsigned blocks, unsigned threads, double *a, const double *b, const double *c) \\
{ EACH(blocks, 1, threads, 1, stream_##op(a, b, c, 3.0)); }
STREAMED(init) STREAMED(read) STREAMED(scale) STREAMED(triad) STREAMED(3pt) STREAMED(5pt)
void run_vector_add(float *a, const float *b, const float *c, unsigned n)
{ EACH((n + 255) / 256, 1, 256, 1, vector_add(a, b, c, n)); }
void run_gemm(float *a, const float *b, const float *c, unsigned n)
{ EACH((n + 31) / 32, (n + 7) / 8, 32, 8, gemm(a, b, c, n)); }
void run_convolution(float *a, const float *b, const float *c, unsigned n)
{ EACH((n + 31) / 32, (n + 7) / 8, 32, 8, convolution(a, b, c, n)); }
}
"""


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("g++") is None:
        pytest.skip("g++ is missing; apt install g++")
    folder: Path = tmp_path_factory.mktemp("kernels")
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(SHIM + SOURCE.read_text(encoding="utf-8") + LAUNCH)
    subprocess.run(["g++", "-std=c++17", "-O2", "-w", "-shared", "-fPIC", source, "-o", library], check=True)
    return ctypes.CDLL(str(library))


def at(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@pytest.mark.parametrize("footprint", [128, 4096, 100 * 128 + 5])
def test_chase_visits_every_line_once_per_cycle(cpu: ctypes.CDLL, footprint: int) -> None:
    words = chase_words(footprint)
    base, n_lines = words.ctypes.data, max(1, footprint // 128)
    words += np.uint64(base)
    result = np.zeros(2, dtype=np.uint64)
    visited = []
    for hops in range(n_lines + 1):
        cpu.run_chase(ctypes.c_void_p(base), ctypes.c_longlong(0), ctypes.c_longlong(hops), at(result))
        visited.append((int(result[0]) - base) // 128)
    assert sorted(visited[:-1]) == list(range(n_lines))
    assert visited[-1] == visited[0] == 0
    cpu.run_chase(ctypes.c_void_p(base), ctypes.c_longlong(2), ctypes.c_longlong(1), at(result))
    assert (int(result[0]) - base) // 128 == visited[3 % n_lines]


@pytest.mark.parametrize("lines", [1, 3, 8, 21])
def test_all_warps_read_the_working_set_cyclically(cpu: ctypes.CDLL, lines: int) -> None:
    array = np.random.default_rng(0).integers(0, 100, (lines, 32)).astype(np.float32)
    sums = np.zeros((2, 8, 32), dtype=np.float32)
    cpu.run_sm_loads(2, 256, at(array), lines, ctypes.c_longlong(50), at(sums))
    expected = [[sum(array[(warp + 8 * n) % lines] for n in range(50)) for warp in range(8)]] * 2
    np.testing.assert_array_equal(sums, expected)


def test_chunks_of_the_shared_set_cover_it(cpu: ctypes.CDLL) -> None:
    array = np.random.default_rng(0).integers(0, 100, 3 * 2**16).astype(np.float64)
    sums = np.zeros((3, 1024))
    cpu.run_l2_loads(3, at(array), 3, at(sums))
    parts = array.reshape(32, 3, 2, 1024)
    np.testing.assert_array_equal(sums, parts.sum(axis=(0, 2)))


def test_strides_read_the_words_of_the_workload(cpu: ctypes.CDLL) -> None:
    from buddysim.synthetic.l1_strides import OFFSETS

    for stride in (0, 1, 5, 15):
        array = np.random.default_rng(0).integers(0, 100, 4096).astype(np.float32)
        sums, cycles = np.zeros((32, 32), dtype=np.float32), np.zeros(1, dtype=np.int64)
        cpu.run_l1_strides(at(array), stride, ctypes.c_longlong(3), at(sums), at(cycles))
        lane = np.arange(32) * stride
        for warp in range(32):
            first = lane + warp % 2 * 32 * stride
            np.testing.assert_array_equal(sums[warp], 3 * sum(array[first + offset] for offset in OFFSETS))


def test_stream_does_what_it_is_called(cpu: ctypes.CDLL) -> None:
    blocks, threads, margin = 3, 48, 16
    b, c = (np.random.default_rng(seed).random(blocks * threads + 2 * margin) for seed in (1, 2))
    inside = slice(margin, -margin)

    def near(distance: int) -> npt.NDArray[np.float64]:
        return b[margin + distance : len(b) - margin + distance]

    expected = {
        "init": np.full(blocks * threads, 3.0),
        "read": np.zeros(blocks * threads),
        "scale": 3 * near(0),
        "triad": near(0) + 3 * c[inside],
        "3pt": 3 * (near(-1) + near(0) + near(1)),
        "5pt": 3 * (near(-2) + near(-1) + near(0) + near(1) + near(2)),
    }
    for op, values in expected.items():
        a = np.zeros_like(b)
        getattr(cpu, f"run_stream_{op}")(blocks, threads, at(a[margin:]), at(b[margin:]), at(c[margin:]))
        np.testing.assert_allclose(a[inside], values)
        assert not a[:margin].any()
        assert not a[-margin:].any()


def test_kernels_of_programs_compute_what_they_are_called(cpu: ctypes.CDLL) -> None:
    n = 40
    b, c = (np.random.default_rng(seed).random((n, n)).astype(np.float32) for seed in (1, 2))
    a = np.zeros_like(b)
    cpu.run_vector_add(at(a), at(b), at(c), n * n)
    np.testing.assert_allclose(a, b + c)
    cpu.run_gemm(at(a), at(b), at(c), n)
    np.testing.assert_allclose(a, b @ c, rtol=1e-5)
    a[:] = 0
    cpu.run_convolution(at(a), at(b), at(c), n)
    weights = c.reshape(-1)[:9].reshape(3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(b, (3, 3))
    np.testing.assert_allclose(a[1:-1, 1:-1], (windows * weights).sum(axis=(2, 3)), rtol=1e-5)
    assert not a[0].any()
    assert not a[:, -1].any()


def test_nvrtc_compiles_them() -> None:
    """The kernels compile without a GPU, for the oldest architecture of the presets that this compiler supports."""
    spec = find_spec("nvidia.cuda_nvrtc") if find_spec("nvidia") is not None else None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("NVRTC is missing: pip install nvidia-cuda-nvrtc-cu12")
    (library,) = Path(spec.submodule_search_locations[0]).glob("lib/libnvrtc.so.*")
    nvrtc = ctypes.CDLL(str(library))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = SOURCE.read_text(encoding="utf-8").encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 2)(b"--std=c++17", b"--gpu-architecture=compute_70")
    status = nvrtc.nvrtcCompileProgram(program, 2, options)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert status == 0, log.value.decode()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    entries = ptx.value.decode().split(".visible .entry ")[1:]
    loads = {entry.split("(")[0]: entry.count("ld.global") for entry in entries}
    assert set(loads) == {
        "chase", "sm_loads", "l2_loads", "l1_strides", "vector_add", "gemm", "convolution",
        *(f"stream_{op}" for op in ("init", "read", "scale", "triad", "3pt", "5pt")),
    }  # fmt: skip
    # What is timed is still there: loads are neither left out nor taken out of their loops.
    assert loads["sm_loads"] >= 16
    assert loads["l1_strides"] >= 8
    assert loads["l2_loads"] >= 8
    assert loads["stream_read"] == 1
