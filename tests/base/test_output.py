"""Output files are written completely or not at all."""

from __future__ import annotations

import ast
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.base.output import INCOMPLETE, Output, check_output, check_outputs, write_bytes, write_text, write_with
from tests.syntax_trees import nodes_of

ROOT = Path(__file__).parents[2]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("before")

    def broken(part: Path) -> None:
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_with(tmp_path / "out", broken)
    assert (tmp_path / "out").read_text() == "before"
    assert names(tmp_path) == ["out"]
    write_text(tmp_path / "out", "after")
    assert (tmp_path / "out").read_text() == "after"
    assert names(tmp_path) == ["out"]


def test_what_cannot_be_written_is_said_beforehand(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, expected in (
        (tmp_path, "is a folder"),
        (tmp_path / "a" / "b", "there is no folder"),
        (tmp_path / "file" / "b", "there is no folder"),
        ("", "an empty name"),
        (tmp_path / ("n" * 300), "File name too long"),
        ("/proc/out", "can't be written"),
        (tmp_path / f"x{INCOMPLETE}", "interrupted captures"),
        ("x\0y", "null"),
    ):
        with pytest.raises(BuddysimError, match=expected) as refused:
            check_output(path)
        assert "\n" not in str(refused.value)
    check_output(tmp_path / "a")
    check_output(tmp_path / ("n" * 255))
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("mode", ["same", "dotted", "symbolic link", "hard link", "link to the output"])
def test_an_input_is_not_written_over_whatever_its_name(tmp_path: Path, mode: str) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("precious")
    if mode == "same":
        output = source
    elif mode == "dotted":
        (tmp_path / "sub").mkdir()
        output = tmp_path / "sub" / ".." / "in"
    elif mode == "symbolic link":
        output.symlink_to(source)
    elif mode == "hard link":
        output.hardlink_to(source)
    else:
        output, source = source, tmp_path / "link"
        source.symlink_to(output)
    with pytest.raises(BuddysimError, match="is an input"):
        check_output(output, [None, source])
    with pytest.raises(BuddysimError, match="is an input"):
        write_text(output, "gone", [source])
    assert source.read_text() == "precious"


def test_what_becomes_an_input_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("precious")
    output = Output(tmp_path / "out", [tmp_path / "in"])
    (tmp_path / "out").hardlink_to(tmp_path / "in")
    with pytest.raises(BuddysimError, match="is an input"):
        output.put()
    assert names(tmp_path) == ["in", "out"]
    assert (tmp_path / "out").read_text() == "precious"


def test_two_outputs_are_not_one_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(BuddysimError, match="written twice"):
        check_outputs([tmp_path / "a", None, tmp_path / "link"])
    check_outputs([tmp_path / "a", tmp_path / "b"])
    check_outputs(["/dev/null", "/dev/null"])


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_output(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "whole")
    assert os.read(reader, 100) == b"whole"
    os.close(reader)
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


def test_devices_stay_devices() -> None:
    write_text("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)  # noqa: PTH116
    with pytest.raises(BuddysimError, match="No space left"):
        write_text("/dev/full", "too much")


def test_a_link_stays_one_and_its_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "whole")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "file").chmod(0o640)
    write_text(tmp_path / "link", "again")
    assert (tmp_path / "file").read_text() == "again"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(BuddysimError, match="Too many levels"):
        check_output(tmp_path / "loop")


def test_a_part_that_is_worth_something_stays(tmp_path: Path) -> None:
    def broken() -> None:
        with Output(tmp_path / "out", keep_part=True) as output:
            output.part.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert (tmp_path / "out.incomplete").read_text() == "half"
    with pytest.raises(BuddysimError, match="what an interrupted capture left"):
        Output(tmp_path / "out", keep_part=True)
    (tmp_path / "out.incomplete").unlink()
    with Output(tmp_path / "out", keep_part=True) as output:
        output.part.write_text("whole")
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize(
    ("target", "redirected"), [("/dev/stdout", False), ("/dev/stdout", True), ("/dev/fd/1", True), ("link", True)]
)
def test_the_standard_output_is_written_through(tmp_path: Path, target: str, redirected: bool) -> None:
    """`Output` writes to a pipe, and appends to a file that the shell has opened."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = f"from buddysim.base.output import write_text; print('first'); write_text({target!r}, 'whole')"
    with (tmp_path / "file").open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=file if redirected else subprocess.PIPE,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            check=True,
        )
    assert (done.stdout or (tmp_path / "file").read_bytes()) == b"first\nwhole"


WAITING = """
import sys, time
from buddysim.base.output import Output
from buddysim.cli import _run_inside
def work():
    with Output(sys.argv[1]) as output:
        output.part.write_text("half")
        print("ready", flush=True)
        time.sleep(60)
sys.exit(_run_inside(work))
"""


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGXCPU]
)
def test_nothing_half_written_is_left_by_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "out").write_text("before")
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # one that a shell has ignored stays ignored
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert error.count("\n") == 1
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_text() == "before"


#: Calls that write a file, and the modules that may make them: `base/output.py`; caches of what is compiled; writers of
#: a part that `Output` made; folders of a capture's own that are gone afterwards; the store of sweeps, which many
#: processes write without locks, and the kernel's counter of memory.
WRITING = {"write_text", "write_bytes", "savefig", "NamedTemporaryFile", "mkstemp", "tofile", "replace", "rename"}
MAY_WRITE = {
    "base/output.py",
    "base/compiled.py",
    "base/compile_plugin.py",
    "base/sections/section_writer.py",
    "capture/compilation.py",
    "capture/opencl/session.py",
    "capture/opencl/programs.py",
    "capture/torch/spool.py",
    "capture/torch/__init__.py",
    "base/parsers/tar.py",  # into the temporary folder of an archive
    "sweep/store.py",
    "sweep/index.py",
    "sweep/memory_grants.py",
    "workloads/opencl_program.py",
}


def writes_by_itself(call: ast.Call, module: str) -> bool:
    """Return whether a call writes to a path: ``PATH.write_text(..)``, ``open(.., "w")``, ``PATH.replace(..)``."""
    if not isinstance(call.func, ast.Attribute | ast.Name):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    given = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if name == "open":
        a_file = not any(isinstance(one, int) for one in given)  # not a descriptor
        return a_file and any(isinstance(text, str) and set(text) & set("wax+") and len(text) <= 3 for text in given)
    if not isinstance(call.func, ast.Attribute):
        return False
    if name in ("write_text", "write_bytes"):  # those of `base.output` are called by their bare names
        return True
    if name in ("replace", "rename"):  # of a path; a text's has two arguments
        return len(call.args) == 1 and not call.keywords
    return name in WRITING and name != "savefig"


def test_no_module_has_a_way_of_its_own_to_write() -> None:
    violations = []
    for path in sorted((ROOT / "buddysim").rglob("*.py")):
        module = path.relative_to(ROOT / "buddysim").as_posix()
        if module in MAY_WRITE:
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and writes_by_itself(node, module):
                violations.append(f"{module}:{node.lineno}: {ast.unparse(node.func)}")
    assert not violations
    for module in MAY_WRITE:  # none is there in vain
        calls = [node for node in nodes_of(ROOT / "buddysim" / module) if isinstance(node, ast.Call)]
        assert any(writes_by_itself(call, module) for call in calls), module


def test_bytes_are_bytes(tmp_path: Path) -> None:
    write_bytes(tmp_path / "out", b"\0\xff")
    assert (tmp_path / "out").read_bytes() == b"\0\xff"
    write_text(tmp_path / "out", "a\udcffb")
    assert (tmp_path / "out").read_bytes() == b"a\\udcffb"


def test_one_output_takes_over_what_another_has_written(tmp_path: Path) -> None:
    first, second = Output(tmp_path / "a", keep_part=True), Output(tmp_path / "b", keep_part=True)
    second.part.write_text("of the second")
    first.take_over(second)
    first.put()
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "of the second"


def test_an_output_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def flushed(descriptor: int) -> None:
        steps.append("flush")
        fsync(descriptor)

    def named(part: Path, target: Path) -> Path:
        steps.append("name")
        return replace(part, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", named)
    write_text(tmp_path / "x", "a")
    assert steps == ["flush", "name"]


def test_what_a_killed_process_left_goes_at_the_next_write(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom buddysim.base.output import Output\n"
        "Output(sys.argv[1]).part.write_text('half')\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "x")], check=False)
    (tmp_path / ".y.1.0.partial").touch()  # of a process that runs, and of another output
    assert len([*tmp_path.iterdir()]) == 2
    with Output(tmp_path / "x") as unfinished:
        assert {path.name for path in tmp_path.iterdir()} == {unfinished.part.name, ".y.1.0.partial"}
        unfinished.part.write_text("whole")
    assert (tmp_path / "x").read_text() == "whole"


WRITES = """
import sys
from buddysim.base.output import write_bytes
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    write_bytes(sys.argv[1], sys.argv[2].encode() * 300_000)
"""


def test_of_two_writers_of_one_file_one_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write_bytes(path, b"x" * 300_000)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITES, str(path), letter], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
        )
        for letter in "ab"
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    read = set()
    while any(writer.poll() is None for writer in writers):
        read.add(path.read_bytes())
    read.add(path.read_bytes())
    assert read <= {letter * 300_000 for letter in (b"x", b"a", b"b")}
    assert [writer.communicate() and writer.returncode for writer in writers] == [0, 0]
    assert names(tmp_path) == ["out"]


def test_what_another_process_is_writing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container of its own, its number may be unknown here: its lock tells."""
    monkeypatch.setattr("buddysim.base.output._is_running", lambda number: False)
    with Output(tmp_path / "x") as first, Output(tmp_path / "x") as second:
        first.part.write_text("1")
        second.part.write_text("2")
    assert (tmp_path / "x").read_text() == "1"
