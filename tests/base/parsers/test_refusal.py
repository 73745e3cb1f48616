"""Any exception of another library's parser is one line and exit code 2; those of this package stay what they are."""

from __future__ import annotations

import ast
import errno
import io
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import field_validator

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers import zstd
from buddysim.base.parsers.refusal import refusal
from buddysim.base.schema import Schema, checked
from buddysim.training.fitting.mixed_program import MixedProgram, solve_with_scipy
from tests.fuzz import good_files
from tests.fuzz.promise import keeps_its_promise
from tests.syntax_trees import nodes_of
from tests.test_hostile_cases import part_of_texts, spool_with
from tests.trace.builders import write_small

ROOT = Path(__file__).resolve().parents[3]


class Strange(Exception):
    """An exception that no list of exceptions has."""


def fails(*_: Any, **__: Any) -> Any:
    raise Strange("out of\nthe blue")


class Failing:
    """A reader whose construction works."""

    line_num = 1
    __init__ = lambda self, *_, **__: None  # noqa: E731
    __iter__ = lambda self: self  # noqa: E731
    __next__ = read = decompress = fails


def config(folder: Path) -> list[str]:
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return ["networks", "show", f"{folder}/config.json"]


def machine(folder: Path) -> list[str]:
    (folder / "x.toml").write_text('base = "p100-nvlink2"\nname = "x"')
    return ["machines", f"{folder}/x.toml"]


def timings(folder: Path) -> list[str]:
    (folder / "x.csv").write_text(good_files.timings())
    return ["calibrate", f"{folder}/x.csv", "--machine", "titan-x", "--library", "cudnn5", "-o", f"{folder}/o.toml"]


def graph(folder: Path) -> list[str]:
    return ["networks", "show", str(ROOT / "traces" / "fashion-cnn.graph.json")]


def plan(folder: Path) -> list[str]:
    (folder / "x.toml").write_text("[[layer]]\n")
    return ["train", "alexnet", "--batch", "4", "--scheme", "plan", "--plan", f"{folder}/x.toml"]


def snapshot(folder: Path) -> list[str]:
    import pickle

    (folder / "x.pickle").write_bytes(pickle.dumps(good_files.snapshot()))
    return [*step(folder), f"{folder}/x.pickle"]


def step(folder: Path) -> list[str]:
    (folder / "llama.json").write_bytes((good_files.AGAINST / "llama.json").read_bytes())
    return ["train", f"{folder}/llama.json", "--machine", "a100-40", "--batch", "1", "--against"]


def profile(folder: Path) -> list[str]:
    return [*step(folder), str(good_files.AGAINST / "llama_cpu.json.gz")]


def spool(folder: Path) -> list[str]:
    spool_with(folder, good_files.spool()["snapshot-0.npz"])
    return ["recover", f"{folder}/x.bin.incomplete", "-o", f"{folder}/o.bin"]


def archive(folder: Path) -> list[str]:
    (folder / "x.tar").write_bytes(bytes(10240))
    return ["convert", f"{folder}/x.tar", f"{folder}/out"]


def bundle(folder: Path) -> list[str]:
    for name, content in good_files.bundle().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if not name.endswith(".xz") else lzma.compress(b"x"))
    return ["convert", str(folder), f"{folder}/out"]


def trace(folder: Path) -> list[str]:
    return ["verify", str(write_small(folder / "t.bin", 4))]


def part(folder: Path) -> list[str]:
    pytest.importorskip("duckdb")
    part_of_texts(folder)
    return ["results", "--store", f"{folder}/store", "--sql", "select * from results"]


def timeline(folder: Path) -> list[str]:
    return ["train", "alexnet", "--batch", "4", "--scheme", "baseline-p", "--timeline", f"{folder}/x.svg"]


PARSERS: dict[str, tuple[str, Any, Callable[[Path], list[str]]]] = {
    "json": ("json.loads", fails, config),
    "tomllib": ("tomllib.loads", fails, machine),
    "csv": ("csv.reader", Failing, timings),
    "pydantic": ("pydantic.BaseModel.model_validate", fails, plan),
    "pydantic, machines": ("pydantic.BaseModel.model_validate", fails, machine),
    "pydantic, JSON": ("pydantic.TypeAdapter.validate_json", fails, graph),
    "pydantic, Python": ("pydantic.TypeAdapter.validate_python", fails, snapshot),
    "numpy": ("numpy.lib.format.read_magic", fails, spool),
    "zipfile": ("zipfile.ZipFile", fails, spool),
    "zipfile, members": ("zipfile.ZipFile.read", fails, spool),
    "tarfile": ("tarfile.open", fails, archive),
    "tarfile, members": ("tarfile.TarFile.next", fails, archive),
    "lzma": ("lzma.LZMAFile.read", fails, bundle),
    "gzip": ("gzip.GzipFile.read", fails, profile),
    "zstandard": ("zstandard.ZstdDecompressor", Failing, trace),
    "zstandard, heads": ("zstandard.frame_content_size", fails, trace),
    "pyarrow": ("pyarrow.parquet.ParquetFile", fails, part),
    "duckdb": ("duckdb.connect", fails, part),
    "matplotlib": ("matplotlib.figure.Figure.savefig", fails, timeline),
}


@pytest.mark.parametrize("name", PARSERS)
def test_an_exception_of_any_class_is_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, replaced, make = PARSERS[name]
    (tmp_path / "case").mkdir()
    command = make(tmp_path / "case")
    for module in ("pyarrow.parquet", "numpy.lib.format", "matplotlib.figure"):
        if target.startswith(module):
            pytest.importorskip(module)
    monkeypatch.setattr(zstd._local, "decompressor", None, raising=False)
    monkeypatch.delattr(zstd._local, "decompressor")
    monkeypatch.setattr(target, replaced)
    err = io.StringIO()
    assert keeps_its_promise(command, err)[0] == 2
    assert "out of the blue" in err.getvalue()


def test_an_exception_of_the_solver_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scipy.optimize.milp", fails)
    with pytest.raises(BuddysimError, match="out of the blue"):
        solve_with_scipy(MixedProgram(1, 1, [1.0, 1.0], [[1.0, 1.0]], [1.0]))


def test_a_bug_of_our_code_that_a_parser_calls_stays_one() -> None:
    class Checked(Schema):
        number: int

        @field_validator("number")
        @classmethod
        def _check(cls, number: int) -> int:
            return len(number)  # type: ignore[arg-type]

    # Its module stands for one of the package: the frame of a validator has the file that defines it.
    namespace: dict[str, Any] = {}
    file = str(ROOT / "buddysim" / "machine" / "model.py")
    exec(compile("def check(number): return len(number)", file, "exec"), namespace)
    Checked._check.__func__.__code__  # noqa: B018 - a plain function

    class Owned(Schema):
        number: int
        _check = field_validator("number")(namespace["check"])

    with pytest.raises(TypeError):
        checked(Owned, {"number": 1}, "x")
    with pytest.raises(BuddysimError, match="x: object of type 'int' has no len"):
        checked(Checked, {"number": 1}, "x")


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "quota")])
def test_memory_that_is_out_and_a_full_disk_keep_their_lines(error: Exception) -> None:
    with pytest.raises(type(error)):
        raise refusal(error, "x")


#: Calls of parsers by the names that code has for them.
CALLS = {
    "json.load", "json.loads", "csv.reader", "csv.DictReader", "np.load", "np.loadtxt", "np.genfromtxt", "np.fromfile",
    "np.savez", "zlib.decompress", "zlib.decompressobj", "zstandard.ZstdDecompressor", "zstandard.frame_content_size",
    "duckdb.connect",
}  # fmt: skip
METHODS = {
    "model_validate", "model_validate_json", "model_validate_strings", "validate_python", "validate_json",
    "validate_strings", "savefig",
}  # fmt: skip
MODULES = {
    "tomllib", "zipfile", "tarfile", "lzma", "gzip", "bz2", "xml", "pyarrow.json", "duckdb", "pickletools",
}  # fmt: skip
NAMES = {"ParquetFile", "read_table", "milp"}
#: By file, what it may have: why.
ALLOWED = {
    "buddysim/capture/script_process.py": {"json.loads"},  # its own settings, before the package is there
    "buddysim/plotting/notebook_figure.py": {"savefig"},  # a figure that the user's own program draws
    "tools/lowest_versions.py": {"tomllib"},  # pyproject.toml, before anything is installed
    "tools/make_web.py": {"gzip", "zipfile"},  # packs what it makes
    "tools/run_mutants.py": {"json.loads", "tomllib"},  # its own files: the package that it changes is not imported
}


#: A file without any of these words has no parser: it needs no syntax tree.
WORDS = re.compile("|".join(sorted({name.rpartition(".")[2] for name in CALLS | METHODS | MODULES | NAMES})))


def parsers_in(path: Path) -> set[str]:
    """Return the parsers that a file calls or imports."""
    parsers: set[str] = set()
    if not WORDS.search(path.read_text(encoding="utf-8")):
        return parsers
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            parsers |= {one.name for one in node.names if one.name in MODULES or one.name.partition(".")[0] in MODULES}
        elif isinstance(node, ast.ImportFrom) and node.module:
            parsers |= {node.module} & MODULES | {one.name for one in node.names} & NAMES
            parsers |= {f"{node.module}.{one.name}" for one in node.names} & (CALLS | MODULES)
        elif isinstance(node, ast.Attribute):
            parsers |= {node.attr} & METHODS
            if isinstance(node.value, ast.Name):
                parsers |= {f"{node.value.id}.{node.attr}"} & CALLS
    return parsers


def test_parsers_are_called_in_base_alone() -> None:
    files = [*(ROOT / "buddysim").rglob("*.py"), *(ROOT / "tools").rglob("*.py")]
    elsewhere = {}
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("buddysim/base/") and (parsers := parsers_in(path)):
            elsewhere[name] = parsers
    assert elsewhere == ALLOWED


@pytest.mark.parametrize("path", sorted((ROOT / "buddysim" / "base").rglob("*.py")), ids=lambda path: path.stem)
def test_no_list_of_exceptions_is_left_around_a_parser(path: Path) -> None:
    """A try around a parser has ``except Exception``, which raises the refusal."""
    for node in nodes_of(path):
        if not isinstance(node, ast.Try):
            continue
        body = ast.unparse(ast.Module(node.body, []))
        calls = {*CALLS, *(f".{name}(" for name in METHODS), "tomllib.", "tarfile."}
        if any(call in body for call in calls):
            assert "refusal" in ast.unparse(node.handlers[-1]), (path, body)
            assert ast.unparse(node.handlers[-1].type) == "Exception"  # type: ignore[arg-type]
