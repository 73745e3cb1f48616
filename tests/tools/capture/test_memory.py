"""``capture memory``: what the trace file says is what the program did, and the program doesn't notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from buddysim.trace import Trace, open_trace, verify_trace

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing; apt install gcc libc6-dev")


def run(*arguments: str | Path, folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    """``capture memory`` in a process of its own, as users run it."""
    return subprocess.run(
        [sys.executable, "-m", "buddysim", "capture", "memory", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)},
        **options,  # type: ignore[call-overload]
    )


def contents(trace: Trace, snapshot: int, name: str) -> np.ndarray:
    (allocation,) = [one for one in trace.allocations if one.name == name]
    pages, data = trace.snapshots[snapshot].read(allocation.index)
    assert pages is None
    return data


HEAT = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 20000
static double history[N];
int calls;
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
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def compiled(folder: Path, name: str, source: str, *flags: str, compiler: str = "gcc") -> Path:
    path = folder / name
    suffix = {"gcc": ".c", "g++": ".cpp", "gfortran": ".f90"}[compiler]
    path.with_suffix(suffix).write_text(source)
    subprocess.run([compiler, "-g", "-O1", str(path.with_suffix(suffix)), "-o", str(path), *flags], check=True)
    return path


def test_contents_are_the_programs_byte_for_byte(programs: Path, tmp_path: Path) -> None:
    program = compiled(programs, "heat", HEAT)
    done = run("-o", "heat.bin", "--every-calls", "malloc:2", "--snapshots", "all", "--", program, folder=tmp_path)
    assert (done.returncode, done.stdout) == (7, "5.75 unseen\n"), done.stderr
    with open_trace(tmp_path / "heat.bin") as trace:
        verify_trace(trace)
        names = {one.name for one in trace.allocations}
        assert names == {"make_field (heat.c:8) < main (heat.c:10)", "main (heat.c:10)", "history"}
        field = np.arange(20000) * 0.25
        for snapshot, step in enumerate((0, 2, 4)):  # mallocs 2, 4 and 6: the field's is the first
            found = contents(trace, snapshot, "history").view(np.float64)
            assert np.array_equal(found, field + step)
            copy = field.copy()
            copy[step] = -1
            assert np.array_equal(contents(trace, snapshot, "main (heat.c:10)").view(np.float64), copy)
        assert trace.provenance.assumptions["end"] == "none: the program ended with exit code 7"


def test_the_same_run_gives_the_same_file(programs: Path, tmp_path: Path) -> None:
    program = compiled(programs, "heat", HEAT)
    for name in ("one.bin", "two.bin"):
        run("-o", name, "--every-calls", "malloc:2", "--", program, folder=tmp_path)
    one, two = (open_trace(tmp_path / name) for name in ("one.bin", "two.bin"))
    with one, two:
        assert one.allocations[0].base == two.allocations[0].base or not _fixed_addresses()
        assert one.fingerprint == two.fingerprint or not _fixed_addresses()


def _fixed_addresses() -> bool:
    """Whether this system lets a process ask for the same addresses in every run."""
    done = subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False)
    return done.returncode == 0
