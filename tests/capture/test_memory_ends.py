"""``capture memory`` of programs that fail, and of programs that can't be captured."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.trace import open_trace, verify_trace
from tests.capture.native import capture, compiled, contents, ending, environment, needs
from tests.in_process import Done, run_in_process

pytestmark = needs("gcc")

ENDING = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    unsigned char *block = malloc(100000);
    for (int step = 1; step <= 5; step++) {
        memset(block, step, 100000);
        puts("step");
    }
    fflush(stdout);
    switch (argv[1][0]) {
        case 's': *(volatile int *)0 = 1; break;
        case 'a': abort();
        case 'k': raise(SIGKILL); break;
        case 'x': _exit(42);
        case 'm':
            while (malloc(1 << 24)) {}
            puts("out of memory");
            return 12;
    }
    return argc;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("ending"), "ending", ENDING)


@pytest.mark.parametrize(
    ("mode", "code", "expected"),
    [
        ("segmentation fault", 128 + signal.SIGSEGV, "killed by signal 11 (SIGSEGV)"),
        ("abort", 128 + signal.SIGABRT, "killed by signal 6 (SIGABRT)"),
        ("kill", 128 + signal.SIGKILL, "killed by signal 9 (SIGKILL)"),
        ("x", 42, "none: the program ended with exit code 42"),
    ],
)
def test_trace_is_complete_up_to_abnormal_end(
    program: Path, tmp_path: Path, mode: str, code: int, expected: str
) -> None:
    done = capture("--every-calls", "puts:1", "--", program, mode, folder=tmp_path)
    assert done.returncode == code
    with open_trace(tmp_path / "out.bin") as trace:
        assert expected in ending(trace)
        assert len(trace.snapshots) == 5
        (name,) = [one.name for one in trace.allocations]
        assert [set(contents(trace, index, name)) for index in range(5)] == [{1}, {2}, {3}, {4}, {5}]


def test_the_capture_of_a_failed_program_replaces_nothing(program: Path, tmp_path: Path) -> None:
    (tmp_path / "out.bin").write_text("precious")

    def captured(*arguments: str) -> Done:
        command = ("capture", "memory", "-o", "out.bin", *arguments)
        return run_in_process(*command, folder=tmp_path, environment=environment(tmp_path))

    done = captured("--every-calls", "puts:1", "--", str(program), "x")
    assert done.returncode == 42
    assert "out.bin: unchanged: the program failed; the captured part is out.bin.incomplete" in done.stderr
    assert main(["recover", str(tmp_path / "out.bin.incomplete"), "-o", str(tmp_path / "saved.bin")]) == 0
    with open_trace(tmp_path / "saved.bin") as trace:
        assert len(trace.snapshots) == 5
        assert trace.kernels
    (tmp_path / "out.bin.incomplete").unlink()
    assert captured("--", "false").returncode == 1
    assert (tmp_path / "out.bin").read_text() == "precious"
    assert not (tmp_path / "out.bin.incomplete").exists()


def test_full_disk_keeps_captured_part_and_program_ends(program: Path, tmp_path: Path) -> None:
    limited = ("sh", "-c", 'ulimit -f 12; exec "$@"', "sh", sys.executable, "-m", "buddysim", "capture", "memory")
    command = [*limited, "-o", "out.bin", "--every-calls", "puts:1", "--contents", "all", "--", str(program), "end"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.stdout == "step\n" * 5
    assert done.returncode == 2
    (error,) = done.stderr.splitlines()
    assert error.endswith("File too large; the captured part is out.bin.incomplete")
    assert main(["recover", str(tmp_path / "out.bin.incomplete"), "-o", str(tmp_path / "saved.bin")]) == 0
    with open_trace(tmp_path / "saved.bin") as trace:
        verify_trace(trace)
        assert trace.allocations


def test_a_program_that_runs_out_of_memory(program: Path, tmp_path: Path) -> None:
    limited = ("sh", "-c", f"ulimit -v 150000; exec {program} memory")
    done = capture("--every-calls", "puts:1", "--", *limited, folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (12, "out of memory"), done.stderr
    with open_trace(tmp_path / "out.bin") as trace:
        assert ending(trace) == "none: the program ended with exit code 12"
        assert trace.snapshots


@pytest.mark.slow
def test_ctrl_c_and_killed_capture_leave_a_recoverable_part(tmp_path: Path) -> None:
    source = """
    #include <stdlib.h>
    #include <string.h>
    int main(void) { char *volatile block = malloc(100000); for (char n = 1;; n++) memset(block, n, 100000); }
    """
    endless = compiled(tmp_path, "endless", source)
    command = [sys.executable, "-m", "buddysim", "capture", "memory", "-o", "out.bin", "--", str(endless)]
    options = {"cwd": tmp_path, "env": environment(tmp_path), "stderr": subprocess.DEVNULL, "start_new_session": True}

    part = tmp_path / "out.bin.incomplete"

    def started() -> subprocess.Popen[bytes]:
        for name in ("out.bin", part.name):
            (tmp_path / name).unlink(missing_ok=True)
        process = subprocess.Popen(command, **options)  # type: ignore[call-overload]
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (part.exists() and part.stat().st_size > 2000):
            time.sleep(0.02)
        return process  # type: ignore[no-any-return]

    process = started()
    os.killpg(process.pid, signal.SIGINT)  # what the terminal does
    assert process.wait(30) == 128 + signal.SIGINT
    with open_trace(tmp_path / "out.bin") as trace:
        verify_trace(trace)
        assert "killed by signal 2 (SIGINT)" in ending(trace)
        assert trace.snapshots

    process = started()
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM

    process = started()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    assert not (tmp_path / "out.bin").exists()
    assert main(["verify", str(part)]) == 2
    assert main(["recover", str(part), "-o", str(tmp_path / "saved.bin")]) == 0
    with open_trace(tmp_path / "saved.bin") as trace:  # what is complete can be had
        verify_trace(trace)
        assert not trace.interrupted
        assert ending(trace).startswith("Recovered: the capture was interrupted")
        assert trace.snapshots


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the only line of a capture that exits with 2."""
    try:
        code = main(["capture", "memory", *arguments])
    except SystemExit as error:
        code = error.code
    assert code == 2
    error = capsys.readouterr().err
    assert error.startswith("buddysim: error: ")
    assert error.count("\n") == 1
    return error


def test_uncapturable_programs_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no-such-program: not found" in refused(capsys, "no-such-program")
    (tmp_path / "text").write_text("no program\n")
    assert "not executable" in refused(capsys, "--", "./text")
    (tmp_path / "text").chmod(0o755)
    assert "neither an ELF program nor a script" in refused(capsys, "--", "./text")
    static = compiled(tmp_path, "static", "int main(void) { return 0; }", "-static")
    assert "statically linked" in refused(capsys, "--", str(static))
    (tmp_path / "script").write_text(f"#!{static}\n")
    (tmp_path / "script").chmod(0o755)
    assert "statically linked" in refused(capsys, "--", "./script")
    shutil.copy("/bin/true", tmp_path / "special")
    (tmp_path / "special").chmod(0o4755)
    assert "setuid" in refused(capsys, "--", "./special")
    (tmp_path / "cut").write_bytes(Path("/bin/true").read_bytes()[:70])
    (tmp_path / "cut").chmod(0o755)
    assert "damaged" in refused(capsys, "--", "./cut")
    assert not (tmp_path / "out.bin").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--every-calls", "0"), "expected a number of calls"),
        (("--every-calls", "a b:3"), "expected a number of calls"),
        (("--every-seconds", "-1"), "expected a number of seconds above 0"),
        (("--snapshots", "0"), "expected 1 to 1000, or all"),
        (("--min-bytes", "much"), "a size"),
        (("--contents", "0 B"), "expected more than nothing"),
        (("--seed", "-1"), "expected 0 to 2^63 - 1"),
        (("-o", "no/such/folder/out.bin"), "can't be written"),
    ],
)
def test_bad_arguments(capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], expected: str) -> None:
    assert expected in refused(capsys, *arguments, "--", "true")


def test_a_missing_compiler_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shutil.copy("/bin/true", tmp_path / "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "gcc is missing; to install it: apt install gcc libc6-dev" in refused(capsys, "true")


def test_missing_preload_library_is_reported(tmp_path: Path, program: Path) -> None:
    """A static program that ``env`` starts runs uncaptured, as no check can find it before."""
    static = compiled(tmp_path, "static", "int main(void) { return 6; }", "-static")
    (tmp_path / "other").write_text(f"#!/usr/bin/env -S {static}\n")
    (tmp_path / "other").chmod(0o755)
    done = capture("--", "./other", folder=tmp_path)
    assert done.returncode == 6
    assert "no allocation was large enough" in done.stderr


def test_the_help_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["capture", "memory", "--help"])
    text = capsys.readouterr().out
    for option in ("every-calls", "every-seconds", "snapshots", "min-bytes", "contents", "sample-bytes", "seed"):
        assert f"--{option}" in text


def test_a_wrapper_that_leaves_the_work_to_a_child_is_named(tmp_path: Path) -> None:
    """The message names children only if the program had any."""
    work = "int main(void) { for (volatile long i = 0; i < 60000000; i++) {} return 0; }"
    worker = compiled(tmp_path, "worker", work)
    done = capture("--", "sh", "-c", f"{worker}; true", folder=tmp_path)
    assert done.returncode == 0
    assert "did most of the work, untraced" in done.stderr
    done = capture("--", "true", folder=tmp_path)
    assert "no allocation was large enough" in done.stderr
    assert "other processes" not in done.stderr


def test_memory_that_comes_after_the_first_snapshot_by_time_is_in_one(tmp_path: Path) -> None:
    """The program has run for longer than the time between snapshots before its only allocation, freed at once."""
    work = (
        "for (volatile long i = 0; i < 60000000; i++) {} volatile char *p = malloc(1 << 20); p[5] = 1; free((void *)p);"
    )
    made = compiled(tmp_path, "late", f"#include <stdlib.h>\nint main(void) {{ {work} return 0; }}")
    done = capture("--every-seconds", "0.05", "--", made, folder=tmp_path)
    assert "snapshots of 1 allocation" in done.stderr, done.stderr


# Waits, ten seconds at most, until a thread of the process has a child: the image of a snapshot.
WAIT_FOR_AN_IMAGE = r"""
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(void) {
    char name[400], child[8];
    int found = 0;
    for (time_t end = time(NULL) + 10; !found && time(NULL) < end;) {
        DIR *tasks = opendir("/proc/self/task");
        for (struct dirent *task; !found && (task = readdir(tasks));) {
            snprintf(name, sizeof name, "/proc/self/task/%s/children", task->d_name);
            FILE *file = fopen(name, "r");
            if (!file) continue;
            found = fgets(child, sizeof child, file) != NULL;
            fclose(file);
        }
        closedir(tasks);
    }
    volatile char *p = malloc(1 << 20);
    p[5] = 1;
    free((void *)p);
    return found ? 0 : 9;
}
"""


def test_memory_freed_during_a_snapshot_without_it_is_in_the_next(tmp_path: Path) -> None:
    """The program allocates and frees while the clock's thread waits for the image of an earlier snapshot."""
    made = compiled(tmp_path, "meets", WAIT_FOR_AN_IMAGE)
    for _ in range(5):
        done = capture("--every-seconds", "0.01", "--", made, folder=tmp_path)
        if done.returncode == 9:
            pytest.skip("/proc/self/task/*/children shows no image of a snapshot")
        assert "snapshots of 1 allocation" in done.stderr, done.stderr


def test_names_without_source_lines_suggest_debug_information(tmp_path: Path) -> None:
    source = "int main(void) { volatile char *p = malloc(1 << 20); p[5] = 1; free((void *)p); return 0; }"
    for flag, suggested in (("-g0", True), ("-g", False)):
        made = compiled(tmp_path, f"made{flag}", f"#include <stdlib.h>\n{source}", flag)
        done = capture("--", made, folder=tmp_path)
        assert ("compile the program with -g" in done.stderr) == suggested, done.stderr
