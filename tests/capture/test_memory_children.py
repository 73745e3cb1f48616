"""``capture memory`` names children that allocate the memory, and captures them with ``--follow``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from buddysim.trace import open_trace
from tests.capture.native import capture, compiled, needs

pytestmark = needs("gcc")

WORKER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    int value = argc > 1 ? atoi(argv[1]) : 1;
    size_t bytes = 100000 * (size_t)value;
    unsigned char *field = malloc(bytes);
    memset(field, value, bytes);
    for (volatile long i = 0; i < 60000000; i++) {}
    puts(getenv("LD_PRELOAD") ? "seen" : "unseen");
    return field[5] != value;
}
"""

STARTER = """
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char *mine = malloc(100000);
    memset(mine, 1, 100000);
    char *with[] = {"worker", "3", NULL}, *none[] = {NULL};
    pid_t child;
    switch (argv[1][0]) {
        case 's': posix_spawn(&child, argv[2], NULL, NULL, with, none); break;
        case 'v': if (!(child = vfork())) { execve(argv[2], with, none); _exit(9); } break;
        case 'p': { FILE *pipe = popen(argv[2], "r"); return pclose(pipe); }
        case 'y': return system(argv[2]);
        case 'f':  /* a copy of itself */
            if (!(child = fork())) {
                char *field = malloc(300000);
                memset(field, 3, 300000);
                for (volatile long i = 0; i < 60000000; i++) {}
                exit(field[7] != 3);
            }
    }
    int status;
    waitpid(child, &status, 0);
    return mine[5] != 1 || status;
}
"""


QUICK = """
#include <stdlib.h>
#include <string.h>
int main(void) {
    unsigned char *field = malloc(200000);
    memset(field, 7, 200000);
    return field[5] != 7;
}
"""

PARENT = """
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char *mine = malloc(800000);
    memset(mine, 1, 800000);
    for (volatile long i = 0; i < 10000000; i++) {}
    char *with[] = {"quick", NULL}, *none[] = {NULL};
    pid_t child = 0;
    int status = 0;
    if (argv[1][0] == 's' && argv[1][1] == 'p') posix_spawn(&child, "./quick", NULL, NULL, with, none);
    else if (argv[1][0] == 's') status = system("./quick");
    else if (argv[1][0] == 'c' || argv[1][0] == 'i') {
        if (!(child = fork())) {
            if (argv[1][0] == 'c') memset(malloc(300000), 3, 300000);
            _exit(0);
        }
    }
    if (child) waitpid(child, &status, 0);
    return mine[5] != 1 || status;
}
"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("worker"), "worker", WORKER, "-fno-builtin")


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("starter"), "starter", STARTER, "-fno-builtin", "-w")


_SLOW = [pytest.param(way, marks=pytest.mark.slow) for way in ("vfork", "popen", "system")]


@pytest.mark.parametrize("way", ["timeout", "spawn", "fork", pytest.param("shell", marks=pytest.mark.slow), *_SLOW])
def test_the_child_that_did_the_work_is_named(worker: Path, starter: Path, tmp_path: Path, way: str) -> None:
    """Children are named whether or not the program itself has captured memory."""
    wrapped = {"timeout": ("timeout", "60", worker), "shell": ("sh", "-c", f"{worker}; true")}
    done = capture("--", *wrapped.get(way, (starter, way if way != "system" else "y", worker)), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    named = "copies of itself" if way == "fork" else "worker"
    expected = f"child processes ({named}) did most of the work, untraced: --follow"
    assert expected in done.stderr
    assert "smaller allocations: --min-bytes" not in done.stderr  # that isn't why nothing was seen


@pytest.mark.parametrize("way", ["shell", "spawn", "fork", pytest.param("timeout", marks=pytest.mark.slow), *_SLOW])
def test_children_are_followed(worker: Path, starter: Path, tmp_path: Path, way: str) -> None:
    """The trace is of the process with the most memory, here the one with 300 kB."""
    wrapped = {
        "timeout": ("timeout", "60", worker, "3"),
        "shell": ("sh", "-c", f"{worker} 2; {worker} 3; {worker} 1; true"),
        "popen": (starter, "popen", f"{worker} 3 >&2"),
        "system": (starter, "y", f"{worker} 3"),
    }
    done = capture("--follow", "--", *wrapped.get(way, (starter, way, worker)), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        sizes = {one.bytes: one.index for one in trace.allocations}
        assert 300_000 in sizes, done.stderr
        assert np.unique(trace.snapshots[-1].read(sizes[300_000])[1]).tolist() == [3]
    process = "starter" if way == "fork" else "worker"
    if way in ("timeout", "system", "popen"):
        messages = " ".join(done.stderr.split())
        several = re.search(rf"the trace is of {process}\b.* most memory of \d captured processes", messages)
        assert f"child of the program: {process}" in messages or several
    elif way == "shell":
        assert f"the trace is of {process}, which had most memory of 3 captured processes" in done.stderr
    assert "most of the work" not in done.stderr
    assert "replaced itself" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.bin"]  # no parts of the others


@pytest.mark.parametrize(
    ("way", "named"),
    [("spawn", "quick"), ("system", "quick"), ("copy", "copies of itself"), ("shell", "quick"), ("idle copy", None)],
)
def test_children_with_memory_of_their_own_are_named_however_little_they_do(
    tmp_path: Path, way: str, named: str | None
) -> None:
    """The program has more memory than its children and runs longer; a child without allocations is not named."""
    compiled(tmp_path, "quick", QUICK, "-fno-builtin")
    program = compiled(tmp_path, "parent", PARENT, "-fno-builtin", "-w")
    command = ("sh", "-c", f"{program} none; ./quick; true") if way == "shell" else (program, way)
    done = capture("--", *command, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    warned = "have memory of their own, which is not captured: --follow" in done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        noted = trace.provenance.assumptions.get("children")
    if named is None:
        assert not warned
        assert "--follow" not in done.stderr
        assert noted is None
    elif way == "shell":  # the shell itself holds nothing: all that was captured is the children's to tell
        assert f"{named}" in done.stderr
        assert "--follow" in done.stderr
    else:
        assert f"child processes ({named}) have memory of their own, which is not captured: --follow" in done.stderr
        assert noted == f"Other processes of the program ({named}) are not captured: the footprint is optimistic."
    followed = capture("--follow", "--", *command, folder=tmp_path)
    assert "which is not captured" not in followed.stderr


def test_a_followed_program_that_does_all_by_itself(worker: Path, tmp_path: Path) -> None:
    done = capture("--follow", "--", worker, "2", folder=tmp_path)
    assert done.returncode == 0
    assert "process" not in done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        assert [one.bytes for one in trace.allocations] == [200_000]
