"""Every input that an issue named keeps the promise (tests/hostile_cases.toml)."""

from __future__ import annotations

import io
import lzma
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tomllib
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from buddysim.sweep.engines import find
from buddysim.sweep.point import key_of
from buddysim.sweep.stored_result import StoredResult
from tests.fuzz import good_files
from tests.fuzz.promise import keeps_its_promise
from tests.trace.builders import write_small

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "buddysim"
CASES = tomllib.loads((ROOT / "tests" / "hostile_cases.toml").read_text(encoding="utf-8"))["case"]


def store(folder: Path) -> Path:
    results = folder / "store" / "results" / "ab"
    results.mkdir(parents=True)
    (folder / "store" / "STORE").write_text("buddysim store 1\n")
    return results


def newer_record(folder: Path) -> None:
    (store(folder) / ("ab" * 16)).write_bytes(b"buddysim-result 9 " + b"0" * 64 + b" 1\nx")


def record(folder: Path, row: Any, **rest: Any) -> None:
    """A record whose checksum and key are right, whatever it holds."""
    identity = {"engine": row["engine"], "model_version": "1"} | rest.pop("identity", {})
    key = key_of(identity)
    content = {"identity": identity, "result": {}, "measured": {}} | rest
    made = StoredResult(
        key, row=row | {"key": key, "model_version": int(identity["model_version"])}, **content
    ).to_bytes()
    path = store(folder).parent / key[:2] / key
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(made)


def record_of_an_unknown_engine(folder: Path) -> None:
    record(folder, {"engine": "nonsense", "time_ps": 1})


def finding_without_columns(folder: Path) -> None:
    version = str(find("analysis").model_version())
    record(folder, {"engine": "analysis", "analysis": "ratio", "trace": "t"}, identity={"model_version": version})


def replay_whose_time_is_a_text(folder: Path) -> None:
    record(folder, {"engine": "replay", "time_ps": "3"})


def replay_without_a_time(folder: Path) -> None:
    record(folder, {"engine": "replay"})


def row_of_another_engine(folder: Path) -> None:
    record(folder, {"engine": "replay", "time_ps": 3}, identity={"engine": "training"})


def record_with_a_list(folder: Path) -> None:
    made = StoredResult("ab" * 20, [], {"engine": "replay", "list": [1]}, {}, {})  # type: ignore[arg-type]
    (store(folder) / ("ab" * 20)).write_bytes(made.to_bytes())


def escape_in_a_store(folder: Path) -> None:
    (store(folder) / "ab\x1b[31mred").write_bytes(b"x")


def part(folder: Path, **columns: Any) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    store(folder)
    (folder / "store" / "parts").mkdir()
    parquet.write_table(pa.table(columns), folder / "store" / "parts" / "x.parquet")


def part_of_lists(folder: Path) -> None:
    part(folder, key=[["ab"]], engine=[["x"]], model_version=[[1]], record=[[b"x"]])


def part_of_texts(folder: Path) -> None:
    part(folder, key=["ab"], engine=["replay"], model_version=["1"], record=["x"])
    path = folder / "store" / "parts" / "x.parquet"
    os.utime(path, (1, 1))  # old enough for its single files to go


def network_named_as_a_formula(folder: Path) -> None:
    text = good_files.printed("networks", "show", "alexnet", "--toml")
    name = tomllib.loads(text)["name"]
    (folder / "x.toml").write_text(text.replace(f'"{name}"', '"$x^{$"', 1))


def sparse_archive(folder: Path, members: int = 1, size: int = 3 << 30) -> None:
    """An archive of files of holes, in GNU's old format for sparse files."""
    out = io.BytesIO()
    for number in range(members):
        head = tarfile.TarInfo(f"{number}/meta.jsonl" if number else "meta.jsonl")
        head.type = tarfile.GNUTYPE_SPARSE
        block = bytearray(head.tobuf(tarfile.GNU_FORMAT))
        block[386 : 386 + 24] = b"%011o\0%011o\0" % (0, 0)  # one part: nothing at 0
        block[483:495] = b"%011o\0" % size
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        out.write(block)
    (folder / "x.tar").write_bytes(out.getvalue() + bytes(110_000))


def many_sparse_files(folder: Path) -> None:
    """Each member is less than 10,000 times the archive, all are more than the budget."""
    sparse_archive(folder, 24, 150 << 20)


def packed_header_of_a_gigabyte(folder: Path) -> None:
    """Zeros as the extended header of a member, which tarfile reads at once."""
    head = tarfile.TarInfo("x")
    head.type, head.size = tarfile.XHDTYPE, 200 << 20
    packer = lzma.LZMACompressor(preset=0)
    parts = [packer.compress(head.tobuf(tarfile.GNU_FORMAT)), *(packer.compress(bytes(1 << 20)) for _ in range(200))]
    (folder / "x.tar").write_bytes(b"".join([*parts, packer.flush()]))


def spool_with(folder: Path, snapshot: bytes) -> None:
    """What an interrupted capture left, with another file of its snapshot."""
    spool = folder / "x.bin.incomplete"
    spool.mkdir()
    for name, content in good_files.spool().items():
        (spool / name).write_bytes(snapshot if name == "snapshot-0.npz" else content)


def npy(shape: str, content: bytes = b"") -> bytes:
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}".encode() + b"\n"
    return b"\x93NUMPY\x01\0" + len(head).to_bytes(2, "little") + head + content


def zipped(content: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("head.npy", content)
    return out.getvalue()


def npy_header_that_is_a_bracket(folder: Path) -> None:
    spool_with(folder, zipped(npy("(")))


def npy_header_of_a_petabyte(folder: Path) -> None:
    spool_with(folder, zipped(npy("(1125899906842624,)}")))


def packed_snapshot(folder: Path) -> None:
    """A hundred megabytes of zeros in a hundred kilobytes."""
    spool_with(folder, zipped(npy(f"({100 << 20},)}}", bytes(100 << 20)), zipfile.ZIP_DEFLATED))


def packed_snapshot_of_gigabytes(folder: Path) -> None:
    """Zeros, whose packed bytes are those of a megabyte of them, many times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head, zeros = npy(f"({2047 << 20},)}}"), bytes(1 << 20)
    parts = [packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)]
    parts += [packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)] * 2047
    content = b"".join([*parts, packer.flush()])
    checksum = zlib.crc32(head)
    for _ in range(2047):
        checksum = zlib.crc32(zeros, checksum)
    sizes = struct.pack("<III", checksum, len(content), len(head) + (2047 << 20))
    member = b"\x14\0\0\0\x08\0\0\0\x21\0" + sizes + b"\x08\0\0\0"
    data = b"PK\3\4" + member + b"head.npy" + content
    directory = b"PK\1\2\x14\0" + member + bytes(14) + b"head.npy"
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(directory), len(data), 0)
    spool_with(folder, data + directory + end)


def damaged_lzma_member(folder: Path) -> None:
    data = bytearray(zipped(npy("(1000,)}", bytes(1000)), zipfile.ZIP_LZMA))
    data[60:64] = b"\xff" * 4
    spool_with(folder, bytes(data))


def snapshot_that_runs(folder: Path) -> None:
    class Runs:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {folder}/ran",)

    snapshot_of(folder, {"device_traces": [[Runs()]], "segments": []})


def snapshot_of_texts(folder: Path) -> None:
    snapshot_of(folder, {"device_traces": [[{"action": "alloc", "addr": "x", "size": 3}]], "segments": []})


def snapshot_of(folder: Path, content: Any) -> None:
    (folder / "x.pickle").write_bytes(pickle.dumps(content))
    shutil.copy(good_files.AGAINST / "llama.json", folder)


def graph_with_a_key_twice(folder: Path) -> None:
    text = (ROOT / "traces" / "fashion-cnn.graph.json").read_text()
    (folder / "x.json").write_text(text.replace('"bytes":64', '"bytes":64,"bytes":64', 1))


#: Variables of the environment as product code names them; those of a capture's child are the capture's own.
VARIABLE = re.compile(r'"((?!BUDDYSIM_CAPTURE_)(?:BUDDYSIM|XDG)_[A-Z_]+|MPLBACKEND|COLUMNS|SOURCE_DATE_EPOCH)"')


def test_every_variable_that_is_read_has_a_case() -> None:
    read = {name for path in PACKAGE.rglob("*.py") for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    assert {"BUDDYSIM_STORE", "XDG_CACHE_HOME"} <= read
    assert read <= {name for case in CASES for name in case.get("environment", {})}


def needs(case: dict[str, Any]) -> bool:
    return bool({"results", "sweep", "diff", "report"} & {*case["command"]})


def marked(case: dict[str, Any]) -> Any:
    return pytest.param(case, id=case["name"].replace(" ", "-"), marks=[pytest.mark.slow] if case.get("slow") else [])


@pytest.mark.slow
@pytest.mark.parametrize("case", [*map(marked, CASES)])
def test_a_case_keeps_the_promise(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if needs(case) and find_spec("duckdb") is None:
        pytest.skip("needs pip install 'buddysim[sweep]'")
    if "report" in case["command"] and find_spec("plotly") is None:
        pytest.skip("needs pip install 'buddysim[report]'")
    folder = tmp_path / "case"
    folder.mkdir()
    for name, text in case.get("files", {}).items():
        (folder / name).write_text(text.lstrip("\n"))
    if "make" in case:
        globals()[case["make"]](folder)
    for name, text in case.get("environment", {}).items():
        monkeypatch.setenv(name, text.replace("{}", str(folder)))
    trace = write_small(tmp_path / "t.bin", 4) if "TRACE" in case["command"] else None
    command = [str(trace) if word == "TRACE" else word.replace("{}", str(folder)) for word in case["command"]]
    if case.get("process"):
        done = subprocess.run([sys.executable, "-m", "buddysim", *command], capture_output=True, text=True, check=False)
        lines = done.stderr.splitlines()
        assert (done.returncode, len(lines)) == ((2, 1) if "error" in case else (0, 0)), done.stderr
        assert case.get("error", "") in done.stderr
        return
    err = io.StringIO()
    code, _ = keeps_its_promise(command, err)
    assert code == (2 if "error" in case else 0)
    assert case.get("error", "") in err.getvalue()
    assert not code or not [*folder.glob("*.svg")]
