"""``capture memory`` of memory from neither ``malloc`` nor ``mmap``, and of memory allocated before ``main``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from buddysim.trace import Trace, open_trace
from tests.capture.native import capture, compiled, needs

pytestmark = needs("gcc")

ALLOCATOR = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#define N 100000
static double *filled(void *block, double first) {
    double *field = block;
    for (int i = 0; i < N; i++) field[i] = first + i;
    return field;
}
int main(void) {
    double *small = filled(malloc(N * sizeof(double)), 0);
    double *broken = filled(sbrk(N * sizeof(double) + 4096), 1e6);
    double *mapped = filled((void *)syscall(SYS_mmap, NULL, N * sizeof(double), PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 2e6);
    puts("first");
    filled(mapped, 3e6);
    puts("second");
    syscall(SYS_munmap, mapped, N * sizeof(double));
    double *reserved = mmap(NULL, 1L << 36, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(reserved + (1L << 30), 1L << 32, PROT_READ | PROT_WRITE);
    filled(reserved + (1L << 30) + 512000, 4e6);
    puts("third");
    return broken[5] + small[5] > 0 ? 0 : 1;
}
"""


def values_of(trace: Trace, snapshot: int) -> dict[str, set[float]]:
    """Return the millions in which an allocation's whole numbers lie, by its name."""
    result = {}
    for contents in trace.snapshots[snapshot].contents:
        data = contents.read()[1]
        numbers = data[: len(data) // 8 * 8].view(np.float64)
        field = numbers[(numbers > 1000) & (numbers < 1e7) & (numbers == np.floor(numbers))]
        result[trace.allocations[contents.allocation].name] = set(np.unique(field // 1e6))
    return result


def test_untracked_memory_is_captured(tmp_path: Path) -> None:
    program = compiled(tmp_path, "allocator", ALLOCATOR)
    arguments = ("--every-calls", "puts:1", "--snapshots", "all", "--contents", "all")
    done = capture(*arguments, "--", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        of_malloc = next(one.name for one in trace.allocations if one.name.startswith("main (allocator.c:"))
        first = {of_malloc: {0.0}, "[heap]": {1.0}, "anonymous memory": {2.0}}
        assert [values_of(trace, snapshot) for snapshot in range(2)] == [first, first | {"anonymous memory": {3.0}}]
        third = values_of(trace, 2)
        assert third == {of_malloc: {0.0}, "[heap]": {1.0}, "anonymous memory #2": {4.0}}
        sizes = {one.name: one.bytes for one in trace.allocations}
        assert all(800_000 <= size < 820_000 for size in sizes.values()), sizes
        # a piece keeps its bounds: unchanged pages of it are not written again
        assert len(sizes) == 4
    assert "not captured" not in done.stderr


NEW = """
#include <cstdio>
#include <vector>
struct Node { Node *next; double values[10]; };
int main() {
    std::vector<double *> fields;
    for (int k = 0; k < 8; k++) {
        fields.push_back(new double[250000]);
        for (int i = 0; i < 250000; i++) fields[k][i] = k + i * 0.5;
    }
    Node *list = nullptr;
    for (int i = 0; i < 60000; i++) list = new Node{list, {double(i)}};
    std::puts("end");
    return list->values[0] + fields[3][2] == 60003 ? 0 : 1;
}
"""


@needs("g++")
def test_an_allocator_that_serves_new_by_itself(tmp_path: Path) -> None:
    """libtcmalloc's ``operator new`` does not call ``malloc``, and takes its memory by ``sbrk``."""
    libraries = sorted(Path("/usr/lib/x86_64-linux-gnu").glob("libtcmalloc*.so.4"))
    if not libraries:
        pytest.skip("no libtcmalloc: apt install libtcmalloc-minimal4")
    flags = ("-Wl,--no-as-needed", str(libraries[0]))
    program = compiled(tmp_path, "news", NEW, *flags, compiler="g++")
    done = capture("--every-calls", "puts:1", "--", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        assert 21_000_000 < sum(one.bytes for one in trace.allocations) < 30_000_000


THREADS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *work(void *data) {
    char deep[300000], *list = NULL;
    memset(deep, 3, sizeof deep);
    for (int i = 0; i < 5000; i++) {
        char *next = malloc(1000);
        memset(next, 1, 1000);
        *(char **)next = list;
        list = next;
    }
    for (int i = 0; i < 20; i++) memset(malloc(150000), 2, 150000);  /* mappings of their own, below --min-bytes */
    puts("ready");
    return list ? data : deep;
}
int main(void) {
    pthread_t thread;
    char *field = malloc(4000000);
    memset(field, 5, 4000000);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return *field != 5;
}
"""


def test_mallocs_own_memory_and_stacks_stay_out_and_are_named(tmp_path: Path) -> None:
    program = compiled(tmp_path, "threads", THREADS, "-pthread", "-fno-builtin")
    arguments = ("--every-calls", "puts:1", "--min-bytes", "160KiB")
    done = capture(*arguments, "--", program, folder=tmp_path)
    with open_trace(tmp_path / "out.bin") as trace:
        assert [one.bytes for one in trace.allocations] == [4_000_000], [one.name for one in trace.allocations]
        problems = trace.provenance.assumptions["problems"]
    result = re.search(r"([\d.]+) MiB of the ([\d.]+) MiB of resident memory are not captured", done.stderr)
    assert result, done.stderr
    assert result[0] in problems
    assert 7.6 < float(result[1]) < 9.1  # 5 MB of a thousand bytes each, 3 MB in mappings of their own
    assert float(result[1]) + 3.7 < float(result[2]) < 14.0  # the captured 4 MB, and what the C library has of its file
    assert "in malloc's heaps: smaller allocations, freed memory" in done.stderr


CONSTRUCTED = """
#include <stdlib.h>
#include <string.h>
unsigned char *early;
__attribute__((constructor)) static void make(void) { memset(early = malloc(300000), 7, 300000); }
"""


def test_a_constructor_of_a_library(tmp_path: Path) -> None:
    compiled(tmp_path, "libearly.so", CONSTRUCTED, "-shared", "-fPIC", "-fno-builtin")
    main = "extern unsigned char *early; int main(void) { return early[299999] - 7; }"
    program = compiled(tmp_path, "late", main, "-L.", "-l:libearly.so", f"-Wl,-rpath,{tmp_path}")
    done = capture("--", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        ((name, size),) = [(one.name, one.bytes) for one in trace.allocations]
        assert name.startswith("make (libearly.c:")
        assert size == 300_000
        assert np.unique(trace.snapshots[-1].read(0)[1]).tolist() == [7]


LATE_WRITES = """
#include <stdlib.h>
#include <string.h>
#include <time.h>
int main(int count, char **words) {
    unsigned char *block = malloc(300000);
    memset(block, 3, 300000);
    while (clock() < CLOCKS_PER_SEC / 10) {}
    memset(block, 7, 300000);
    if (count > 1) free(block);
    return 0;
}
"""


@pytest.mark.parametrize(("words", "last"), [((), 7), (("frees",), 3)], ids=["kept", "freed"])
def test_what_is_written_last_is_in_the_last_snapshot(tmp_path: Path, words: tuple[str, ...], last: int) -> None:
    """By time, a snapshot at the end has what was written since the one before; what is freed by then has no part."""
    program = compiled(tmp_path, "late", LATE_WRITES, "-fno-builtin")
    done = capture("--every-seconds", "0.06", "--", program, *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        (block,) = [number for number, one in enumerate(trace.allocations) if one.bytes == 300_000]
        assert np.unique(trace.snapshots[-1].read(block)[1]).tolist() == [last]


OWN_MALLOC = """
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static char *top;
void *malloc(size_t bytes) {
    if (!top) top = (char *)syscall(SYS_brk, 0);
    char *block = top + 16;
    top = (char *)syscall(SYS_brk, block + (bytes + 15 & ~15ul));
    *(size_t *)(block - 8) = bytes;
    return block;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return memset(malloc(count * bytes), 0, count * bytes); }
void *realloc(void *block, size_t bytes) {
    size_t before = block ? ((size_t *)block)[-1] : 0;
    return memcpy(malloc(bytes), block, before < bytes ? before : bytes);
}
int main(void) {
    char *block = malloc(3000000);
    memset(block, 1, 1000000);
    memset(block + 2000000, 1, 1000000);  /* with a hole between, where no memory is */
    puts("end");
    return block[1] - 1;
}
"""


def test_a_malloc_in_the_executable_which_comes_before_any_library(tmp_path: Path) -> None:
    program = compiled(tmp_path, "own", OWN_MALLOC, "-fno-builtin", "-w")
    done = capture("--every-calls", "puts:1", "--contents", "all", "--", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        ((name, size),) = [(one.name, one.bytes) for one in trace.allocations]
        assert name == "[heap]"
        assert 3_000_000 <= size < 3_200_000
        assert np.count_nonzero(trace.snapshots[0].read(0)[1] == 1) >= 2_000_000
