"""``capture memory``: the trace has the program's data byte for byte, and the program runs unchanged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from buddysim.compress import entry_classes
from buddysim.trace import OP_STORE, open_trace
from tests.capture.native import (
    ROOT,
    allocation,
    capture,
    capture_as_users_do,
    compiled,
    contents,
    doubles,
    ending,
    needs,
)

pytestmark = needs("gcc")

HEAT = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 20000
static double history[N];
__attribute__((noinline)) static double *make_field(size_t n) { return malloc(n * sizeof(double)); }
int main(void) {
    double *field = make_field(N), *copy = calloc(N, sizeof(double));
    for (int i = 0; i < N; i++) field[i] = i * 0.25;
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < N; i++) history[i] = field[i] + step;
        memcpy(copy, field, N * sizeof(double));
        if (step != 3) copy[step] = -1;
        void *volatile small = malloc(10);
        free(small);
    }
    printf("%g %s\\n", history[7], getenv("LD_PRELOAD") ? "seen" : "unseen");
    return 7;
}
"""


@pytest.fixture(scope="module")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("heat"), "heat", HEAT)


def test_contents_are_the_programs_byte_for_byte(heat: Path, tmp_path: Path) -> None:
    done = capture("--every-calls", "malloc:2", "--snapshots", "all", "--", heat, folder=tmp_path)
    assert (done.returncode, done.stdout) == (7, "5.75 unseen\n"), done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        names = {one.name for one in trace.allocations}
        assert names == {"make_field (heat.c:7) < main (heat.c:9)", "main (heat.c:9)", "history"}
        field = np.arange(20000) * 0.25
        for snapshot, step in enumerate((0, 2, 4)):  # mallocs 2, 4 and 6: the field's is the first
            assert np.array_equal(doubles(trace, snapshot, "history"), field + step)
            copy = field.copy()
            copy[step] = -1
            assert np.array_equal(doubles(trace, snapshot, "main (heat.c:9)"), copy)
        for size_map in trace.size_maps:
            data = trace.snapshots[size_map.snapshot].read(size_map.allocation)[1]
            assert np.array_equal(size_map.read(), entry_classes(data))
        assert ending(trace) == "none: the program ended with exit code 7"


def test_another_compressor(heat: Path, tmp_path: Path) -> None:
    capture("--compressor", "zvc", "--every-calls", "malloc:2", "--snapshots", "2", "--", heat, folder=tmp_path)
    with open_trace(tmp_path / "out.bin") as trace:
        assert {size_map.compressor for size_map in trace.size_maps} == {"zvc"}
        for size_map in trace.size_maps:
            data = trace.snapshots[size_map.snapshot].read(size_map.allocation)[1]
            assert np.array_equal(size_map.read(), entry_classes(data, "zvc"))


def test_a_compressor_of_the_users(heat: Path, tmp_path: Path) -> None:
    plugin = ROOT / "docs" / "examples" / "plugins" / "base_delta.py"
    options = ("--plugin", plugin, "--compressor", "base-delta", "--every-calls", "malloc:2", "--snapshots", "1")
    done = capture(*options, "--", heat, folder=tmp_path)
    assert done.returncode == 7, done.stderr
    assert "for exactly equal distances" not in done.stderr  # of one snapshot
    with open_trace(tmp_path / "out.bin") as trace:
        assert {size_map.compressor for size_map in trace.size_maps} == {"base-delta"}


def test_a_kernel_writes_back_the_pages_that_changed(heat: Path, tmp_path: Path) -> None:
    capture("--every-calls", "malloc:2", "--snapshots", "all", "--", heat, folder=tmp_path)
    with open_trace(tmp_path / "out.bin") as trace:
        assert [kernel.launch_index for kernel in trace.kernels] == [0, 1, 2]
        assert [snapshot.launch_index for snapshot in trace.snapshots] == [1, 2, 3]
        copy = trace.allocations[allocation(trace, "main (heat.c:9)")]
        stored = {}
        for kernel in trace.kernels:
            for chunk in map(trace.decode_chunk, kernel.chunks):
                lines = chunk.lines[chunk.ops["first_line"]][chunk.ops["kind"] == OP_STORE] >> np.uint64(8)
                stored.setdefault(kernel.index, []).append(lines * np.uint64(128))
        for kernel, expected in ((1, {0}), (2, {0})):  # copy[0] came back, copy[2] went, and so on: its first page
            addresses = np.concatenate(stored[kernel])
            inside = addresses[(addresses >= copy.base) & (addresses < copy.end)]
            assert {int(address - copy.base) // 8192 for address in inside} == expected


def test_the_same_run_gives_the_same_file(heat: Path, tmp_path: Path) -> None:
    if subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system doesn't let a process ask for the same addresses in every run")
    fingerprints = set()
    for captured in (capture, capture_as_users_do):  # not even the process matters
        captured("--every-calls", "3", "--", heat, folder=tmp_path)
        with open_trace(tmp_path / "out.bin") as trace:
            fingerprints.add(trace.fingerprint)
    assert len(fingerprints) == 1


def test_unsampled_pages_have_unknown_size(heat: Path, tmp_path: Path) -> None:
    capture("--contents", "1MiB", "--every-calls", "malloc:6", "--", heat, folder=tmp_path)
    with open_trace(tmp_path / "out.bin") as trace:
        number = allocation(trace, "history")
        pages, data = trace.snapshots[0].read(number)
        assert pages is not None
        expected = np.arange(20000) * 0.25 + 4
        for page, start in zip(pages, range(0, len(data), 8192), strict=True):
            stored = data[start : start + 8192].view(np.float64)
            assert np.array_equal(stored, expected[int(page) * 1024 : int(page) * 1024 + 1024])
        (classes,) = [size_map.read() for size_map in trace.size_maps if size_map.allocation == number]
        assert np.array_equal(classes, entry_classes(expected.view(np.uint8)))  # of everything
    (tmp_path / "out.bin").unlink()  # heat's exit code is not 0: its trace replaces none
    capture("--sample-bytes", "32KiB", "--every-calls", "malloc:6", "--", heat, folder=tmp_path)
    with open_trace(tmp_path / "out.bin") as trace:
        looked_at, same = trace.snapshots[0].read(allocation(trace, "history"))
        assert np.array_equal(looked_at, pages)
        assert np.array_equal(same, data)
        (classes,) = [size_map.read() for size_map in trace.size_maps if size_map.allocation == number]
        known = np.flatnonzero(classes != 15)
        assert np.array_equal(np.unique(known // 64), pages)
        assert np.array_equal(classes[known], entry_classes(expected.view(np.uint8))[known])


def test_contents_have_a_budget_for_the_whole_file(heat: Path, tmp_path: Path) -> None:
    """The size limit holds for any number of snapshots, here of two or three allocations of 160 KB each."""
    capture("--contents", "1MiB", "--snapshots", "all", "--every-calls", "1", "--", heat, folder=tmp_path)
    with open_trace(tmp_path / "out.bin") as trace:
        stored_bytes = [one.read()[1].size for snapshot in trace.snapshots for one in snapshot.contents]
        assert len(trace.snapshots) > 11
        assert 400_000 < sum(stored_bytes) <= 1 << 20
        assert min(stored_bytes) >= 8192
    (tmp_path / "out.bin").unlink()
    capture("--contents", "64KiB", "--snapshots", "all", "--every-calls", "malloc:1", "--", heat, folder=tmp_path)
    with open_trace(tmp_path / "out.bin") as trace:  # less than a page for each snapshot: sizes alone
        assert not any(snapshot.contents for snapshot in trace.snapshots)
        assert len(trace.size_maps) > 12


KINDS = """
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define N 200000
static char *filled(void *block, int value) { return block ? memset(block, value, N) : (abort(), NULL); }
int main(void) {
    void *aligned;
    filled(malloc(N), 1);
    char *grown = filled(malloc(N / 2 < N ? N : 0), 2);
    grown = realloc(grown, 2 * N);
    memset(grown, 3, 2 * N);
    if (posix_memalign(&aligned, 4096, N)) return 1;
    filled(aligned, 4);
    filled(aligned_alloc(64, 3200 * 64), 5);
    filled(memalign(128, N), 6);
    filled(reallocarray(NULL, N, 1), 7);
    filled(valloc(N), 8);
    filled(mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 9);
    filled(mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 10);
    char *moved = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    moved = mremap(moved, N, 4 * N, MREMAP_MAYMOVE);
    memset(moved, 11, 4 * N);
    mmap(NULL, 1L << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);   /* reserved, not there */
    char *sparse = mmap(NULL, 1L << 26, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    sparse[23456789] = 12;
    char *holes = mmap(NULL, 64 * N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(holes, 13, 64 * N);
    mprotect(holes + 4096, 8192, PROT_NONE);
    char *gone = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, N);
    free(malloc(N));
    if (realloc(filled(malloc(N), 14), 0)) return 2;
    free(realloc(grown, (size_t)-1 / 2) ? NULL : malloc(1));   /* fails and leaves it as it is */
    calloc(1, 17);
    return 0;
}
"""


def test_every_way_to_get_memory(tmp_path: Path) -> None:
    program = compiled(tmp_path, "kinds", KINDS, "-Wno-all", "-fno-builtin")
    done = capture("--every-calls", "calloc:1", "--snapshots", "all", "--", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "8192 bytes could not be read and stand as zeros" in done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        stored = {}
        for one in trace.allocations:
            pages, data = trace.snapshots[-1].read(one.index)
            values = np.unique(data[:100_000])
            stored[int(values[-1])] = (one.bytes, one.name.startswith("mmap: "))
            if pages is None and one.name != "mmap: main (kinds.c:32)":
                assert len(values) == 1, one.name
        heap, mapped = {1: 200_000, 3: 400_000, 4: 200_000, 5: 204_800, 6: 200_000, 7: 200_000, 8: 200_000}, {}
        mapped = {9: 200_000, 10: 200_000, 11: 800_000, 0: 1 << 26, 13: 12_800_000}
        expected = {value: (size, False) for value, size in heap.items()}
        assert stored == expected | {value: (size, True) for value, size in mapped.items()}
        (sparse,) = [one for one in trace.allocations if one.bytes == 1 << 26]
        (classes,) = [size_map.read() for size_map in trace.size_maps if size_map.allocation == sparse.index]
        assert np.array_equal(np.flatnonzero(classes), [23456789 // 128])


def test_run_shorter_than_interval_has_one_snapshot(tmp_path: Path) -> None:
    source = """
    #include <stdlib.h>
    #include <string.h>
    int main(void) {
        char *volatile block = malloc(100000);
        memset(block, 9, 100000);
        free(block);
        return 0;
    }
    """
    program = compiled(tmp_path, "short", source, "-fno-builtin")
    # The default's first interval, 10 ms, passes before the first line on a busy machine.
    assert capture("--every-seconds", "60", "--", program, folder=tmp_path).returncode == 0
    with open_trace(tmp_path / "out.bin") as trace:
        assert len(trace.snapshots) == 1
        assert set(contents(trace, 0, "main (short.c:5)")) == {9}


def test_static_data_is_split_by_symbol(tmp_path: Path) -> None:
    source = """
    int first[50000] = {1, 2, 3}, second[40000];
    static short small[10];
    static volatile struct { int filler; double values[30000]; } hidden;
    int main(void) { for (int i = 0; i < 30000; i++) hidden.values[i] = i; second[7] = small[3] + 1; return 0; }
    """
    program = compiled(tmp_path, "statics", source)
    assert capture("--", program, folder=tmp_path).returncode == 0
    with open_trace(tmp_path / "out.bin") as trace:
        sizes = {one.name: one.bytes for one in trace.allocations}
        assert sizes == {"first": 200_000, "second": 160_000, "hidden": 240_008}
        last = len(trace.snapshots) - 1  # a slow machine takes one amid the loop
        assert contents(trace, last, "first").view(np.int32)[:4].tolist() == [1, 2, 3, 0]
        assert contents(trace, last, "second").view(np.int32)[7] == 1
    subprocess.run(["strip", str(program)], check=True)
    assert capture("--", program, folder=tmp_path).returncode == 0
    with open_trace(tmp_path / "out.bin") as trace:
        assert {one.name for one in trace.allocations} == {"statics: other static data"}
        assert sum(one.bytes for one in trace.allocations) >= 600_008
