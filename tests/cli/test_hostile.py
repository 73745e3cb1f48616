"""Hostile input to every command: nothing eaten, nothing blown up, one line always
(docs/reference/untrusted-files.md)."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import zstandard

import buddysim.trace as bt
from buddysim.base.terminal import LONGEST_LINE
from buddysim.cli import main
from tests.fuzz import good_files
from tests.fuzz.case import check, write_files
from tests.fuzz.promise import keeps_its_promise
from tests.replay.test_lazy_allocations import write_lazy_ranges
from tests.trace.builders import write_small

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "importers" / "accelsim" / "samples" / "v2"
DIGITS = "9" * 5000

#: Commands by the file that each reads: ``IN`` stands for it.
READERS = {
    "trace": ("info", "IN"),
    "trace-verify": ("verify", "IN"),
    "trace-run": ("run", "IN"),
    "trace-profile": ("profile", "IN"),
    "trace-sweep": ("sweep", "IN.bin", "--dry-run"),
    "trace-analyse": ("analyse", "IN.bin"),
    "machine": ("machines", "IN.toml"),
    "machine-run": ("run", "TRACE", "--machine", "IN.toml"),
    "machine-train": ("train", "alexnet", "--machine", "IN.toml"),
    "targets": ("run", "TRACE", "--targets", "IN.toml"),
    "profile-of": ("run", "TRACE", "--profile-of", "IN.bin"),
    "study": ("sweep", "IN.toml", "--dry-run"),
    "study-plot": ("plot", "sweep", "IN.toml", "-o", "OUT.svg"),
    "jobs": ("sweep", "TRACE", "--slurm", "IN.toml", "--dry-run"),
    "network": ("networks", "show", "IN.toml"),
    "network-train": ("train", "IN.toml"),
    "calibration": ("train", "alexnet", "--calibration", "IN.toml"),
    "timings": ("calibrate", "IN.csv", "--machine", "titan-x", "--library", "cudnn5", "-o", "OUT"),
    "densities": ("train", "alexnet", "--scheme", "cdma", "--density-table", "IN.toml"),
    "activations": ("train", "alexnet", "--scheme", "cdma", "--activations", "IN.maps"),
    "operator-graph": ("networks", "show", "IN.json"),
    "result": ("plot", "overview", "IN.json", "-o", "OUT.svg"),
    "training-result": ("plot", "stalls", "IN.json", "-o", "OUT.svg"),
    "timeline": ("plot", "memory", "IN.json", "-o", "OUT.svg"),
    "result-diff": ("diff", "IN.json", "IN.json"),
    "machine-diff": ("diff", "IN.toml", "p100-nvlink2"),
    "kernelslist": ("import", "accelsim", "IN", "-o", "OUT"),
    "part": ("recover", "IN.incomplete", "-o", "OUT"),
    "measured-curves": ("validate", "curves", "--machine", "v100", "--data", "IN.csv"),
    "workload-table": ("workloads", "table", "IN.bin"),
    "workload-diff": ("workloads", "diff", "IN.bin"),
}
SLOW = pytest.mark.slow
needs_sweep = pytest.mark.skipif(find_spec("duckdb") is None, reason="needs pip install 'buddysim[sweep]'")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("good") / "t.bin", 4)


def command(name: str, folder: Path, trace: Path) -> list[str]:
    words = [str(trace) if word == "TRACE" else word for word in READERS[name]]
    return [str(folder / word) if word.partition(".")[0] in ("IN", "OUT") else word for word in words]


def input_of(name: str, folder: Path) -> Path:
    return folder / next(word for word in READERS[name] if word.partition(".")[0] == "IN")


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "what", ["pipe", *(pytest.param(what, marks=SLOW) for what in ("folder", "device", "missing"))]
)
def test_what_is_no_file_is_refused_at_once(name: str, what: str, tmp_path: Path, trace: Path) -> None:
    path = input_of(name, tmp_path)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "device":
        path.symlink_to("/dev/zero")
    code, _ = keeps_its_promise(command(name, tmp_path, trace))
    assert code == 2
    assert [left.name for left in tmp_path.iterdir()] == [path.name] * (what != "missing")


@SLOW
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100,
        b"\xff\xfe" * 50,
        f"a = {DIGITS}".encode(),
        b"a = " + b"[" * 5000 + b"]" * 5000,
        f"[{DIGITS}]".encode(),
        b"[" * 100_000,
        b"{" + b'"a":{' * 5000,
        b'{"\\u202e\\u001b[31m": NaN}',
        b'"\x1b[31m\xe2\x80\xae" = ' + b"x" * 5000,
        b"\x1b[31m,\xe2\x80\xae\n" + b"x" * 9000,
    ],
    ids=[
        "empty",
        "zeros",
        "bytes",
        "digits",
        "nested",
        "json-digits",
        "json-open",
        "json-keys",
        "json-nan",
        "escapes",
        "rows",
    ],
)
def test_what_is_no_such_file_is_one_line(name: str, content: bytes, tmp_path: Path, trace: Path) -> None:
    path = input_of(name, tmp_path)
    path.write_bytes(content)
    code, _ = keeps_its_promise(command(name, tmp_path, trace))
    assert code == 2
    assert path.read_bytes() == content
    assert [left.name for left in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_escapes_is_one_safe_line(name: str, tmp_path: Path, trace: Path) -> None:
    test_what_is_no_such_file_is_one_line(name, b'"\x1b[31m\xe2\x80\xae" = ' + b"x" * 5000, tmp_path, trace)


def _inputs_and_outputs(folder: Path, trace: Path) -> dict[str, tuple[list[str], Path, Path]]:
    """List commands with an input among their outputs: the command, the output, the input."""
    shutil.copy(trace, folder / "t.bin")
    (folder / "t.csv").write_text(good_files.timings())
    (folder / "net.toml").write_text(_toml("networks", "show", "alexnet", "--toml"))
    (folder / "machine.toml").write_text(_toml("machines", "p100-nvlink2", "--toml"))
    shutil.copytree(SAMPLE, folder / "sample")
    data, out = folder / "t.bin", folder / "out"
    kernel = folder / "sample" / "kernel-1.traceg"
    lists = folder / "sample" / "kernelslist.g"
    return {
        "calibrate": (
            ["calibrate", f"{folder}/t.csv", "--machine", "titan-x", "--library", "x", "-o"],
            out,
            folder / "t.csv",
        ),
        "import": (["import", "accelsim", str(lists), "-o"], out, lists),
        "import-kernel": (["import", "accelsim", str(lists), "-o"], out, kernel),
        "run-json": (["run", str(data), "--scheme", "ideal", "--json"], out, data),
        "run-machine": (
            ["run", str(data), "--machine", f"{folder}/machine.toml", "--json"],
            out,
            folder / "machine.toml",
        ),
        "profile": (["profile", str(data), "-o"], out, data),
        "train": (["train", f"{folder}/net.toml", "--json"], out, folder / "net.toml"),
        "train-timeline": (["train", f"{folder}/net.toml", "--timeline"], folder / "out.json", folder / "net.toml"),
    }


def _toml(*words: str) -> str:
    code, printed = keeps_its_promise(words)
    assert code == 0
    return printed


NAMES = ["calibrate", "import", "import-kernel", "run-json", "run-machine", "profile", "train", "train-timeline"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("link_kind", ["itself", "hard link", "symbolic link"])
def test_no_command_writes_over_what_it_reads(name: str, link_kind: str, tmp_path: Path, trace: Path) -> None:
    words, out, read = _inputs_and_outputs(tmp_path, trace)[name]
    before = read.read_bytes()
    if link_kind == "itself":
        if name == "train-timeline":
            pytest.skip("a timeline ends in .json, a network file in .toml")
        out = read
    elif link_kind == "hard link":
        out.hardlink_to(read)
    else:
        out.symlink_to(read)
    code, _ = keeps_its_promise([*words, str(out)])
    assert code == 2
    assert read.read_bytes() == before


@pytest.mark.parametrize("name", NAMES[:-1])
def test_outputs_that_are_no_files(name: str, tmp_path: Path, trace: Path) -> None:
    words, _, _ = _inputs_and_outputs(tmp_path, trace)[name]
    assert keeps_its_promise([*words, ""])[0] == 2
    assert keeps_its_promise([*words, str(tmp_path)])[0] == 2
    assert keeps_its_promise([*words, f"{tmp_path}/missing/out"])[0] == 2
    if name in ("run-json", "profile"):
        assert keeps_its_promise([*words, "/dev/null"])[0] == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)  # noqa: PTH116


def test_a_pipe_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        code = main(["generate", "stream", "-o", str(pipe), "--set", "footprint=64KiB"])
        written = reader.communicate()[0]
    assert code == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "t.bin").write_bytes(written)
    with bt.open_trace(tmp_path / "t.bin") as result:
        bt.verify_trace(result)


def test_profile_looks_at_its_output_first(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys.modules["buddysim.buddy.profiler"], "observe", lambda *_: pytest.fail("it has begun to work")
    )
    assert keeps_its_promise(["profile", str(trace), "-o", str(tmp_path / "missing" / "out")])[0] == 2


def test_a_list_names_files_in_its_folder_only(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "sample")
    for name in ("../x", "/etc/passwd", "a/../../x"):
        for line in (f"kernel-{name}", f"MemcpyHtoD,0x7f0000000000,8,{name}"):
            text = f"{line}\nkernel-1.traceg\n"
            (tmp_path / "sample" / "kernelslist.g").write_text(text)
            code, _ = keeps_its_promise(
                ["import", "accelsim", f"{tmp_path}/sample/kernelslist.g", "-o", f"{tmp_path}/o"]
            )
            assert (code, (tmp_path / "o").exists()) == (2, False), line


@pytest.mark.parametrize(("size", "code"), [(1 << 44, 2), (1 << 36, 0)])
def test_copies_create_lazy_ranges(tmp_path: Path, size: int, code: int) -> None:
    """Some bytes are known of a very large allocation."""
    shutil.copytree(SAMPLE, tmp_path / "sample")
    (tmp_path / "sample" / "payload").write_bytes(bytes(range(256)) * 64)
    old = (tmp_path / "sample" / "kernelslist.g").read_text()
    lines = f"MemcpyHtoD,0x600000000000,{size}\nMemcpyHtoD,0x600000100000,16384,payload\n"
    (tmp_path / "sample" / "kernelslist.g").write_text(lines + old)
    words = ["import", "accelsim", f"{tmp_path}/sample/kernelslist.g", "-o", f"{tmp_path}/out"]
    assert keeps_its_promise(words)[0] == code
    if not code:
        with bt.open_trace(tmp_path / "out") as result:
            sizes = next(each for each in result.size_maps if each.n_entries == size // 128)
            assert (sizes.read(8192, 128) != 15).all()
            assert (sizes.read(0, 8192) == 15).all()


def test_trace_of_lazy_ranges_is_profiled_and_replayed(tmp_path: Path) -> None:
    path = write_lazy_ranges(tmp_path / "t.bin", 1 << 44, name="\x1b[31m\u202e" + "x" * 5000)
    for words in (["profile", str(path)], ["info", str(path)], ["verify", str(path)]):
        assert keeps_its_promise(words)[0] == 0
    assert keeps_its_promise(["run", str(path)])[0] == 2
    write_lazy_ranges(path, 500 << 30)
    words = ["run", str(path), "--set", "dram.capacity=1TiB", "--scheme", "ideal,bandwidth-compression,buddy"]
    assert keeps_its_promise([*words, "--sensitivity", "none"])[0] == 0


def test_archives_stay_in_their_folder(tmp_path: Path) -> None:
    for name, kind in (
        ("../x", tarfile.REGTYPE),
        ("/etc/x", tarfile.REGTYPE),
        ("x", tarfile.SYMTYPE),
        ("x", tarfile.CHRTYPE),
    ):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        assert check(tmp_path / "case", {"x.tar": packed.getvalue()}, ("convert", "{}/x.tar", "{}/out")) == 2


def test_archives_whose_members_are_in_each_others_way(tmp_path: Path) -> None:
    for names in (("b", "b/meta.jsonl"), ("b/meta.jsonl", "b"), ("x" * 300, "y")):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name))
        assert check(tmp_path / "case", {"x.tar": packed.getvalue()}, ("convert", "{}/x.tar", "{}/out")) == 2


@pytest.mark.parametrize(
    "text", ['{"ev": "alloc", "launch": 0, "addr": 1e999, "size": 1e999}', "[" * 5000, "[]", "1", '{"ev": []}']
)
def test_bundles_with_wrong_lines(tmp_path: Path, text: str) -> None:
    files = dict(good_files.bundle())
    files["meta.jsonl"] += text.encode() + b"\n"
    assert check(tmp_path / "case", files, ("convert", "{}", "{}/out")) == 2


@pytest.mark.parametrize(
    "body", [b"", b"1", b"[" * 5000, b'{"name": ' + DIGITS.encode() + b"}", b'{"name": []}', b"{}"]
)
def test_a_stored_result_whose_checksum_is_right_and_row_is_none_is_left_out(tmp_path: Path, body: bytes) -> None:
    name, _, _ = good_files.stored()
    packed = zstandard.ZstdCompressor().compress(body + b"\n" + body + b"\n")
    head = f"buddysim-result 1 {hashlib.sha256(packed).hexdigest()} {len(packed)}\n"
    for content in (head.encode() + packed, b"buddysim-result 1 00 5\nabcde"):
        write_files(tmp_path / "case", {f"store/{name}": content, "store/STORE": good_files.store_head()})
        for more in ((), ("--compact",), ("--prune",), ("-o", f"{tmp_path}/out.csv")):
            assert keeps_its_promise(["results", "--store", f"{tmp_path}/case/store", *more])[0] in (0, 2)


def run(
    *words: str | bytes, environment: dict[str, str] | None = None, shell: str = ""
) -> subprocess.CompletedProcess[bytes]:
    python = [sys.executable, "-m", "buddysim", *words]
    if shell:
        python = ["sh", "-c", f'exec "$@" {shell}', "sh", *python]
    return subprocess.run(
        python, cwd=ROOT, capture_output=True, timeout=300, check=False, env={**os.environ, **(environment or {})}
    )


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "POSIX"])  # two names of one
def test_names_that_are_no_text(tmp_path: Path, trace: Path, locale: str) -> None:
    """A file name that is not UTF-8 is written in an ASCII locale, and no byte of it is lost."""
    name = os.fsencode(tmp_path) + b"/\xff\xfe\xe9.bin"
    shutil.copy(trace, os.fsdecode(name))
    settings = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run("run", name, "--scheme", "ideal", "--json", os.fsencode(tmp_path) + b"/\xff.json", environment=settings)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / os.fsdecode(b"\xff.json")).stat().st_size > 1000
    done = run("info", os.fsencode(tmp_path) + b"/\xffmissing\xe2\x80\xae", environment=settings)
    assert done.returncode == 2
    assert done.stderr.startswith(b"buddysim: error: ")
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.isascii()


@pytest.mark.slow
@needs_sweep
def test_studies_whose_names_are_no_text(tmp_path: Path, trace: Path) -> None:
    """Trace, store, study and figures: simulated points are stored, selected and plotted."""
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    folder = os.fsencode(tmp_path)
    shutil.copy(trace, os.fsdecode(folder + b"/\xff.bin"))
    study = b'title = "costs $x_{ of $\\u202e"\n[set]\ntrace = "t.bin"\n[grid]\nscheme = ["ideal", "pinned-host"]\n'
    Path(os.fsdecode(folder + b"/\xff.toml")).write_bytes(study)
    shutil.copy(trace, tmp_path / "t.bin")
    store = (b"--store", folder + b"/s\xff")
    for words in (
        ("sweep", folder + b"/\xff.bin", "--scheme", "ideal", "--workers", "1", *store),
        ("sweep", folder + b"/\xff.toml", "--workers", "1", *store),
        ("plot", "sweep", folder + b"/\xff.toml", "-o", folder + b"/\xff.svg", *store),
        ("results", "-o", folder + b"/\xff.csv", *store),
        ("results", "-o", folder + b"/\xff.parquet", *store),
        ("run", folder + b"/\xff.bin", "--scheme", "ideal", "--parquet", folder + b"/run\xff.parquet"),
    ):
        done = run(*words, environment=settings)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert len(Path(os.fsdecode(folder + b"/\xff.csv")).read_bytes().splitlines()) == 3  # both traces are one
    (tmp_path / "second.toml").write_bytes(study)
    done = run("plot", "sweep", f"{tmp_path}/second.toml", "-o", f"{tmp_path}/x.svg", *store)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "shell",
    ["2>&-", "<&- >&- 2>&-", "> /dev/full 2> /dev/full"],
)
def test_runs_without_standard_error(trace: Path, shell: str) -> None:
    for unbuffered in ("", "1"):
        settings = {"PYTHONUNBUFFERED": unbuffered}
        done = run("run", str(trace), "--scheme", "ideal", shell=shell, environment=settings)
        assert done.returncode == (0 if shell == "2>&-" else 2)


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command", [("info",), ("run", "--scheme", "ideal", "--json", "-")], ids=lambda words: words[0]
)
def test_a_full_standard_output_is_named(trace: Path, command: tuple[str, ...], unbuffered: str) -> None:
    """Whether its last flush fails, or the write of more than the buffer holds."""
    settings = {"PYTHONUNBUFFERED": unbuffered}
    done = run(command[0], str(trace), *command[1:], shell="> /dev/full", environment=settings)
    assert (done.returncode, done.stderr) == (2, b"buddysim: error: standard output: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize("shell", [">&-", ">&- 2>&-", "<&-", "> /dev/full"])
def test_closed_and_full_streams(trace: Path, shell: str) -> None:
    done = run("info", str(trace), shell=shell)
    assert done.returncode == (0 if shell == "<&-" else 2)
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") == (0 if shell in ("<&-", ">&- 2>&-") else 1)
    assert len(done.stderr) <= LONGEST_LINE + 20
