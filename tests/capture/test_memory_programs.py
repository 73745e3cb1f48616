"""``capture memory`` of programs in C++ and Fortran, with threads, children and exec."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from buddysim.trace import open_trace
from tests.capture.native import allocation, capture, capture_as_users_do, compiled, contents, doubles, needs

pytestmark = needs("gcc")

CPLUSPLUS = """
#include <cstdio>
#include <memory>
#include <vector>
template <class T> struct Field {
    std::vector<T> cells;
    T *raw;
    explicit Field(std::size_t n) : cells(n), raw(new T[n]) {
        for (std::size_t i = 0; i < n; i++) raw[i] = cells[i] = T(i);
    }
};
struct alignas(256) Wide { double values[32]; };
int main() {
    Field<float> field(50000);
    auto wide = std::make_unique<Wide[]>(1000);
    for (int i = 0; i < 1000; i++) wide[i].values[31] = i;
    std::vector<int> grown;
    for (int i = 0; i < 100000; i++) grown.push_back(i);
    void *volatile sign = operator new(10);
    std::printf("%g %g %d\\n", field.cells[17], wide[999].values[31], grown.back());
    std::puts("the end");
    operator delete(sign);
}
"""


@needs("g++")
def test_new_and_containers(tmp_path: Path) -> None:
    program = compiled(tmp_path, "containers", CPLUSPLUS, compiler="g++")
    done = capture("--every-calls", "puts:1", "--", program, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "17 999 99999\nthe end\n"), done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        sites = {one.name: one.bytes for one in trace.allocations}
        # the vector's, by inlined frames through the library; new T[]; make_unique; the vector that grew
        assert sorted(sites.values()) == [200_000, 200_000, 256_000, 524_288]
        assert sum(name.startswith("Field<float>::Field (containers.cpp:") for name in sites) == 2
        assert all("main (containers.cpp:" in name for name in sites)
        for name, size in sites.items():
            data = contents(trace, 0, name)
            if size == 200_000:
                assert np.array_equal(data.view(np.float32), np.arange(50000))
            elif size == 256_000:
                assert np.array_equal(data.view(np.float64)[31::32], np.arange(1000))
            else:
                assert np.array_equal(data.view(np.int32)[:100000], np.arange(100000))


FORTRAN = """
module shared_field
    double precision :: kept(30000)
end module
program waves
    use shared_field
    implicit none
    real, allocatable :: u(:, :), grown(:)
    integer :: i, step
    allocate(u(200, 300))
    do step = 1, 4
        do i = 1, 300
            u(:, i) = i * step
        end do
        kept = step
        if (step == 2) allocate(grown(20000), source=7.0)
        call execute(step)
    end do
    print '(f8.1)', sum(u) / size(u)
    deallocate(u)
contains
    subroutine execute(n)
        integer, intent(in) :: n
        integer, allocatable :: sign(:)
        allocate(sign(n))
        sign = n
        if (sum(sign) < 0) print *, sign
    end subroutine
end program
"""


@needs("gfortran")
def test_fortran_allocatables_and_module_data(tmp_path: Path) -> None:
    program = compiled(tmp_path, "waves", FORTRAN, compiler="gfortran")
    plain = subprocess.run([program], capture_output=True, text=True, check=True)
    done = capture("--every-calls", "free:1", "--snapshots", "all", "--", program, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        (field,) = [one.name for one in trace.allocations if one.bytes == 240_000 and "kept" not in one.name]
        assert field.startswith(("waves (waves.f90:", "MAIN__ (waves.f90:"))
        (grown,) = [one.name for one in trace.allocations if one.bytes == 80_000]
        steps = set()
        for snapshot in trace.snapshots:
            if snapshot.contents_of(allocation(trace, "__shared_field_MOD_kept")) is None:
                continue
            step = doubles(trace, snapshot.index, "__shared_field_MOD_kept")
            assert len(set(step)) == 1
            if step[0] and snapshot.contents_of(allocation(trace, field)):
                values = contents(trace, snapshot.index, field).view(np.float32).reshape(300, 200)
                assert np.array_equal(values, np.repeat(np.arange(1, 301) * step[0], 200).reshape(300, 200))
                steps.add(int(step[0]))
            if step[0] >= 2 and snapshot.contents_of(allocation(trace, grown)):
                assert set(contents(trace, snapshot.index, grown).view(np.float32)) == {7.0}
        assert steps == {1, 2, 3, 4}


THREADS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define BYTES 100000
static void *work(void *number) {
    long sum = 0;
    for (int step = 0; step < 300; step++) {
        unsigned char *block = malloc(BYTES);
        memset(block, (int)(long)number, BYTES);
        block = realloc(block, 2 * BYTES);
        memset(block + BYTES, (int)(long)number, BYTES);
        sum += block[2 * BYTES - 1] == (long)number;
        if (step % 50 == 0) {
            pid_t child = fork();
            if (!child) { free(malloc(BYTES)); free(calloc(BYTES, 2)); _exit(3); }
            int status;
            if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3) abort();
        }
        free(block);
    }
    return (void *)sum;
}
int main(void) {
    pthread_t threads[4];
    long all = 0;
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 4; i++) { void *sum; pthread_join(threads[i], &sum); all += (long)sum; }
    if (wait(NULL) != -1) return 9;      /* no other child */
    printf("%ld\\n", all);
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", [("--every-calls", "97"), ("--every-seconds", "0.005")], ids=["calls", "time"])
def test_threads_and_forks(tmp_path: Path, when: tuple[str, str]) -> None:
    program = compiled(tmp_path, "threads", THREADS, "-pthread")
    done = capture_as_users_do(*when, "--", program, folder=tmp_path, timeout_s=60)
    assert (done.returncode, done.stdout) == (0, "1200\n"), done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        assert 1 <= len(trace.snapshots) <= 10
        for snapshot in trace.snapshots:
            for one in snapshot.contents:
                data = snapshot.read(one.allocation)[1]
                assert len(data) in (100_000, 200_000)
        names = [one.name for one in trace.allocations]
        assert all(name.startswith("work (threads.c:") for name in names)
        assert names or when[0] == "--every-seconds"  # by time, perhaps no snapshot has a block


CHILDREN = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int children_ended;
static void count(int number) { (void)number; children_ended++; }
int main(int argc, char **argv) {
    signal(SIGCHLD, count);
    memset(malloc(100000), argc, 100000);
    fflush(stdout);
    if (fork() == 0) { memset(malloc(200000), 2, 200000); printf("child\\n"); fflush(stdout); _exit(0); }
    wait(NULL);
    if (system("env | grep -c -E 'LD_PRELOAD|BUDDYSIM' || true")) return 8;
    for (volatile long i = 0; i < 20000000; i++) {}
    printf("%d children, descriptor %d\\n", children_ended, dup(0));
    fflush(stdout);
    if (argc == 1) execlp(argv[0], argv[0], "again", (char *)NULL);
    return 5;
}
"""


@pytest.mark.skipif("BUDDYSIM_SANITIZED" in os.environ, reason="the program says what is preloaded: the sanitizer is")
def test_children_are_not_captured_and_exec_is(tmp_path: Path) -> None:
    program = compiled(tmp_path, "children", CHILDREN)
    plain = subprocess.run([program], capture_output=True, text=True, check=False)
    done = capture("--every-seconds", "0.01", "--", program, folder=tmp_path)
    assert (done.returncode, done.stdout) == (5, plain.stdout), done.stderr
    assert "the program replaced itself (exec)" in done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        assert [one.bytes for one in trace.allocations] == [100_000]
        # argc of the second; on a busy computer the last snapshot may be taken while it fills its memory
        assert {2} <= set(trace.snapshots[-1].read(0)[1]) <= {0, 2}


FILLER = """
#include <stdlib.h>
#include <string.h>
int main(void) {
    void *volatile block = malloc(100000);
    memset(block, 1, 100000);
    return 4;
}
"""


def test_scripts_and_wrappers(tmp_path: Path) -> None:
    program = compiled(tmp_path, "filler", FILLER)
    script = tmp_path / "script.sh"
    script.write_text('#!/bin/sh\necho "$0"\nexec env NAME=value "$@"\n')
    script.chmod(0o755)
    done = capture("--", "./script.sh", program, "x", folder=tmp_path)
    assert (done.returncode, done.stdout) == (4, "./script.sh\n"), done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        assert [one.bytes for one in trace.allocations] == [100_000]


COUNTED = """
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    int *step = calloc(50000, sizeof(int));
    double sum = 0;
    for (*step = 1; *step <= 100; ++*step) {
        char text[200];
        snprintf(text, sizeof text, "%d %g %s %g %g %g %g %g %g %d %d", 1, 0.5, "x", 1., 2., 3., 4., 5., 6., 7, 8);
        sum += strlen(text) + pow(1.0 + *step * 1e-3, 7.0) + fma(*step, 3.0, 0.25);
    }
    printf("%.17g\\n", sum);
}
"""


@pytest.mark.parametrize("function", ["snprintf", "pow"])
def test_calls_of_a_named_function(tmp_path: Path, function: str) -> None:
    program = compiled(tmp_path, "counted", COUNTED, "-fno-builtin", "-lm")
    plain = subprocess.run([program], capture_output=True, text=True, check=True)
    done = capture("--every-calls", f"{function}:1", "--", program, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        steps = [int(snapshot.read(0)[1][:4].view(np.int32)[0]) for snapshot in trace.snapshots]
        assert len(steps) == 10  # of 2, 4, ... 40 and 44, 48, ... 100, those nearest to 10, 20, ... 100
        assert all(abs(step - expected) <= 2 for step, expected in zip(steps, range(10, 101, 10), strict=True))
        assert trace.snapshots[-1].label == f"after 100 calls of {function}"


def test_a_function_that_nobody_calls(tmp_path: Path) -> None:
    done = capture("--every-calls", "cblas_dgemm:5", "--", "true", folder=tmp_path)
    assert done.returncode == 0
    assert "0 calls of cblas_dgemm were counted" in done.stderr
