"""The types of files that commands read: a valid file of each, its changes, and commands that read it."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import io
import json
import lzma
import random
import struct
import tarfile
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import zstandard
from hypothesis import strategies as st

from buddysim.cli import main
from buddysim.formats.activations import (
    ActivationsWriter,
    FeatureMapInfo,
    FeatureMapStatistics,
    TrainingPoint,
    layout,
    payload_sizes,
)
from tests.fuzz.grammar import changed_bytes, changed_text, changed_tree, json_of, mostly, toml_of
from tests.fuzz.graphs import small_graph
from tests.fuzz.traces import damaged, grammar_traces
from tests.importers.opencl.captures import write_bundle
from tests.trace import damage
from tests.trace.builders import write_small

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "importers" / "accelsim" / "samples"
AGAINST = ROOT / "tests" / "training" / "against" / "data"
COSTS = ROOT / "buddysim" / "training" / "cost" / "data"

Files = dict[str, bytes]


@dataclass(frozen=True)
class FileType:
    """A type of files.

    Attributes
    ----------
    name : of the type
    files : a strategy of files by their names, some of them changed
    commands : that read them; ``{}`` stands for the folder that they are in, ``TRACE`` for a good trace. ``convert`` is
        no command, but what `tools/make_traces.py` does with a bundle
    """

    name: str
    files: Callable[[], st.SearchStrategy[Files]]
    commands: tuple[tuple[str, ...], ...]


# Good files


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="buddysim-fuzz-"))


def _printed(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(arguments) == 0
    return out.getvalue()


@functools.cache
def small_trace() -> bytes:
    """Return a trace with every kind of section."""
    return write_small(_folder() / "t.bin", 4).read_bytes()


@functools.cache
def _trace_path() -> str:
    small_trace()
    return str(_folder() / "t.bin")


@functools.cache
def _machine(name: str) -> dict[str, Any]:
    return tomllib.loads(_printed("machines", name, "--toml"))


@functools.cache
def _targets() -> dict[str, Any]:
    _printed("profile", _trace_path(), "-o", str(_folder() / "targets.toml"))
    return tomllib.loads((_folder() / "targets.toml").read_text())


@functools.cache
def _profiler_trace() -> Any:
    """A few hundred events of PyTorch's profiler."""
    content = json.loads(gzip.decompress((AGAINST / "llama_cpu.json.gz").read_bytes()))
    return {**content, "traceEvents": content["traceEvents"][:200]}


@functools.cache
def _plan() -> dict[str, Any]:
    path = _folder() / "plan.toml"
    _printed("train", "alexnet", "--batch", "4", "--scheme", "gist-fp8", "--save-plan", str(path))
    content = tomllib.loads(path.read_text())
    content["layer"][1] |= {"feature_map": "offload", "offload": {"offload_ps": 5, "prefetch_launch": 3}}
    return content


_PLAN: dict[str, Any] = {
    "recorded": True,
    "blocks": [
        {"range": "0", "saved": "recompute", "together": 2, "stored": ["mm"], "every_second_product": True},
        {"range": "0", "saved": "offload", "modules": ["mlp"]},
        {"range": "0", "saved": "compress", "modules": ["self_attn"]},
    ],
    "copies": {"streams": 1, "stash": 2, "min_bytes": 0, "blocking": False},
    "compression": {"bits": 10},
    "optimizer": {"device": "nvme", "order": "deepspeed", "keep_gradients": False, "delayed": True},
    "weights": {"device": "nvme", "ahead": 2},
}


def _network() -> dict[str, Any]:
    return tomllib.loads(_printed("networks", "show", "alexnet", "--toml"))


@functools.cache
def _result(command: str) -> dict[str, Any]:
    train = ("train", "alexnet", "--batch", "4", "--scheme", "baseline-p,vdnn-dyn")
    what = ("run", _trace_path(), "--scheme", "ideal,buddy") if command == "run" else train
    content: dict[str, Any] = json.loads(_printed(*what, "--json", "-"))
    return content


@functools.cache
def _stored() -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a stored result: its key, its row, the rest."""
    _trace_path()
    (_folder() / "study.toml").write_text('[set]\ntrace = "t.bin"\nscheme = "ideal"\n')
    _printed("sweep", str(_folder() / "study.toml"), "--store", str(_folder() / "store"), "--workers", "1")
    path = next(path for path in sorted((_folder() / "store").rglob("*")) if path.is_file() and len(path.stem) > 30)
    row, rest = zstandard.ZstdDecompressor().decompress(path.read_bytes().partition(b"\n")[2]).split(b"\n")[:2]
    return str(path.relative_to(_folder() / "store")), json.loads(row), json.loads(rest)


def _store_head() -> bytes:
    return (_folder() / "store" / "STORE").read_bytes()


@functools.cache
def _maps() -> bytes:
    values = np.maximum(np.random.default_rng(0).normal(size=(2, 8, 4, 4)), 0).astype(np.float32)
    from buddysim.compress.tensors import tensor_ratios

    sizes = payload_sizes(tensor_ratios(values))
    infos = (FeatureMapInfo("input", "input", (1, 4, 4)), FeatureMapInfo("relu1", "relu", (8, 4, 4), "conv", 1, 0.0))
    path = _folder() / "good.maps"
    with ActivationsWriter(path, {"tool": "fuzz"}, infos) as writer:
        seen = FeatureMapStatistics(1, values.size, int(np.count_nonzero(values)), sizes, values.size)
        writer.add_point(TrainingPoint(0, 0.0, 2, (seen,), loss=2.5, accuracy=0.5, learning_rate=0.1))
        writer.add_values(0, 1, values)
        writer.add_point(TrainingPoint(10, 0.5, 2, (seen,), loss=1.5))
    return path.read_bytes()


@functools.cache
def _bundle() -> Files:
    folder = write_bundle(_folder() / "bundle")
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@functools.cache
def _spool() -> Files:
    from buddysim.capture.torch.spool import Progress, Spool, SpooledSnapshot, storage_contents

    folder = _folder() / "spool"
    folder.mkdir()
    spool = Spool(folder)
    graph = small_graph()
    spool.keep_graph(graph)
    storages = tuple(
        storage_contents(each.name, each.role, np.zeros(each.bytes, np.uint8), 8192)
        for each in graph.storages[:12]
        if 0 < each.bytes < 1 << 20
    )
    spool.keep(SpooledSnapshot(0, 2.5, storages))
    spool.write_progress(Progress(1))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Changed files


def _tree(good: Callable[[], Any], name: str, write: Callable[[Any], bytes], *, most: int = 4) -> Callable[[], Any]:
    """Generate a file as a changed tree, sometimes changed as a text."""

    def files() -> st.SearchStrategy[Files]:
        text = write(good()).decode()
        whole = mostly(changed_tree(good(), most).map(write), changed_text(text))
        return whole.map(lambda data: {name: data})

    return files


def _text(good: Callable[[], str], name: str) -> Callable[[], st.SearchStrategy[Files]]:
    """Generate a file as a changed text, sometimes with changed bytes."""

    def files() -> st.SearchStrategy[Files]:
        text = good()
        whole = mostly(changed_text(text), changed_bytes(text.encode(), _scribble))
        return whole.map(lambda data: {name: data})

    return files


def _scribble(rng: random.Random, data: bytes) -> bytes:
    return damage.scribble(rng, data)


def _traces(name: str = "x.bin") -> Callable[[], st.SearchStrategy[Files]]:
    def change(rng: random.Random, data: bytes) -> bytes:
        return damaged(data, rng)[0]

    return lambda: changed_bytes(small_trace(), change).map(lambda data: {name: data})


def _from_grammar() -> st.SearchStrategy[Files]:
    return grammar_traces(_folder()).map(lambda data: {"x.bin": data})


@st.composite
def _changed_maps(draw: st.DrawFn, name: str) -> Files:
    """Generate an activations file with changed sections and valid checksums, or with changed bytes."""
    data = _maps()
    if not draw(st.integers(0, 7)):
        return {name: draw(changed_bytes(data, _scribble))}
    sections, at = [], layout.HEADER.size
    while at < len(data):
        kind, _, length, _, _ = layout.SECTION.unpack_from(data, at)
        sections.append((kind, data[at + layout.SECTION.size : at + layout.SECTION.size + length]))
        at += layout.SECTION.size + length
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(sections) - 1))
        kind, payload = sections[number]
        if kind == layout.VALUES:
            payload = draw(changed_bytes(payload, _scribble))
        else:
            with contextlib.suppress(ValueError, RecursionError, zstandard.ZstdError):  # it may be changed already
                tree = json.loads(zstandard.ZstdDecompressor().decompress(payload))
                payload = zstandard.ZstdCompressor().compress(json_of(draw(changed_tree(tree, 2))))
        sections[number] = (kind, payload)
        if not draw(st.integers(0, 5)):
            other = draw(st.integers(0, len(sections) - 1))
            sections[number], sections[other] = sections[other], sections[number]
    content = data[: layout.HEADER.size]
    for kind, payload in sections:
        head = struct.pack("<4sIQI", kind, 0, len(payload), crc32(payload))
        content += head + struct.pack("<I", crc32(head)) + payload
    return {name: content}


@st.composite
def _changed_folder(draw: st.DrawFn, good: Callable[[], Files], folder: str = "") -> Files:
    """Generate a folder in which one or two files are changed, missing or renamed."""
    files = dict(good())
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(files)))
        what = draw(st.integers(0, 15))
        if what == 0 and len(files) > 1:
            del files[name]
        elif what == 1:
            parent = name.rpartition("/")[0]
            wrong = draw(
                st.sampled_from(
                    ("0.bin", "99999999999999999999.bin", "x.every0.bin", "snapshot-x.npz", "snapshot--1.npz")
                )
            )
            files[f"{parent}/{wrong}" if parent else wrong] = files.pop(name)
        else:
            files[name] = draw(_changed_file(name, files[name]))
    return {f"{folder}{name}": data for name, data in files.items()}


def _changed_file(name: str, data: bytes) -> st.SearchStrategy[bytes]:
    """Change a file according to its type, which its name tells."""
    scribbled = changed_bytes(data, _scribble)
    with contextlib.suppress(ValueError, RecursionError):  # it may be changed already
        if name.endswith(".json"):
            return mostly(changed_tree(json.loads(data)).map(json_of), scribbled)
        if name.endswith(".jsonl"):
            rows = [json.loads(row) for row in data.decode().splitlines()]
            return mostly(changed_tree(rows).map(_json_lines), changed_text(data.decode()))
        if name.endswith((".traceg", ".trace", "kernelslist", ".g")):
            return mostly(changed_text(data.decode()), scribbled)
    if name.endswith(".xz"):
        with contextlib.suppress(lzma.LZMAError, EOFError):
            return mostly(
                changed_bytes(lzma.decompress(data), _scribble).map(lambda raw: lzma.compress(raw, preset=0)), scribbled
            )
    return scribbled


def _json_lines(rows: Any) -> bytes:
    return b"\n".join(map(json_of, rows)) if isinstance(rows, list) else json_of(rows)


@functools.cache
def _list_of(sample: str) -> Files:
    return {path.name: path.read_bytes() for path in sorted((SAMPLES / sample).iterdir())}


def _accelsim() -> st.SearchStrategy[Files]:
    """Generate a list with its kernels, of any version of the tracer, and a name that all have."""

    def named(files: Files) -> Files:
        return {"kernelslist.g" if name.startswith("kernelslist") else name: data for name, data in files.items()}

    samples = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
    return st.sampled_from(samples).flatmap(lambda sample: _changed_folder(lambda: named(_list_of(sample))))


@st.composite
def _archives(draw: st.DrawFn) -> Files:
    """Generate an archive of a bundle with strange members, changed bytes, or another compression."""
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode=draw(st.sampled_from(("w", "w:gz", "w:xz"))), format=tarfile.PAX_FORMAT
    ) as archive:
        for name, data in draw(_changed_folder(_bundle)).items():
            member = tarfile.TarInfo(
                draw(
                    st.sampled_from(
                        (f"b/{name}",) * 12 + ("/etc/x", "../x", "b", "\x1b[1m", "b/\u202e", "c/meta.jsonl")
                    )
                )
            )
            member.size = len(data)
            member.type = draw(
                st.sampled_from(
                    (tarfile.REGTYPE,) * 12 + (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
                )
            )
            member.linkname = "/etc/passwd"
            archive.addfile(member, io.BytesIO(data) if member.isfile() else None)
    return {"x.tar": draw(mostly(st.just(packed.getvalue()), changed_bytes(packed.getvalue(), _scribble)))}


@st.composite
def _changed_store(draw: st.DrawFn) -> Files:
    """Generate a stored result with a changed row or rest and a valid checksum, or with changed bytes."""
    name, row, rest = _stored()
    which = draw(st.integers(0, 7))
    row_text = json_of(draw(changed_tree(row)) if which % 2 else row)
    rest_text = json_of(draw(changed_tree(rest)) if which % 2 == 0 else rest)
    packed = zstandard.ZstdCompressor().compress(row_text + b"\n" + rest_text + b"\n")
    whole = b"buddysim-result 1 %b %d\n" % (hashlib.sha256(packed).hexdigest().encode(), len(packed)) + packed
    if which == 7:
        whole = draw(changed_bytes(whole, _scribble))
    return {f"store/{name}": whole, "store/STORE": _store_head()}


@functools.cache
def _timings() -> str:
    lines = (COSTS / "calibration" / "titan-x-cudnn5.csv").read_text().splitlines()
    return "\n".join(lines[:60])


_DENSITIES = {
    "feature_maps": [
        {"kind": "relu", "depth": 0.0, "density": 0.5},
        {"kind": "relu", "depth": 1.0, "density": 0.25},
        {"kind": "fc-relu", "ratio": 2.5},
        {"kind": "pool", "density": 0.5},
        {"layer": "relu*", "density": 0.75},
    ]
}
_DENSITIES_CSV = (
    "layer,kind,depth,density,ratio\n,relu,0,0.5,\n,relu,1,0.25,\n,fc-relu,,,2.5\n,pool,,0.5,\nrelu*,,,0.75,\n"
)
_JOBS = {
    "system": "local", "jobs": 2, "workers": 1, "memory": "4 GB", "walltime": "00:10:00", "queue": "q", "account": "a",
    "prologue": ["module load x"], "directives": ["--exclusive"], "interface": "lo", "log_folder": "logs",
}  # fmt: skip


def _study() -> dict[str, Any]:
    return {
        "title": "s",
        "set": {"trace": _trace_path(), "machine": "p100-nvlink2"},
        "grid": {"link.bandwidth": ["25 GB/s", "150 GB/s"], "scheme": ["buddy", "pinned-host"]},
        "baseline": {"link.bandwidth": "150 GB/s"},
    }


_RUN = ("run", "{}/x.bin", "--scheme", "ideal,bandwidth-compression,pinned-host", "--sensitivity", "none")
_TRAIN = ("train", "alexnet", "--batch", "4", "--scheme")


def _types() -> tuple[FileType, ...]:
    trace = "TRACE"
    return (
        FileType("trace", _traces(), (("verify", "{}/x.bin"), ("info", "{}/x.bin"), ("profile", "{}/x.bin"), _RUN)),
        FileType(
            "trace-grammar",
            _from_grammar,
            (
                ("verify", "{}/x.bin"),
                ("info", "{}/x.bin", "--json", "-"),
                ("analyse", "{}/x.bin", "--only", "ratio,classes,heat,changes,threshold"),
                ("profile", "{}/x.bin", "-o", "{}/out"),
                _RUN,
                ("run", "{}/x.bin", "--scheme", "buddy,unified-memory"),
                ("diff", "{}/x.bin", "{}/x.bin"),
            ),
        ),
        FileType("trace-part", _traces("x.incomplete"), (("recover", "{}/x.incomplete", "-o", "{}/out"),)),
        FileType(
            "machine",
            _tree(lambda: _machine("p100-nvlink2"), "x.toml", toml_of),
            (("machines", "{}/x.toml"),) * 7 + (("run", trace, "--machine", "{}/x.toml", "--scheme", "ideal"),),
        ),
        FileType(
            "training-machine",
            _tree(lambda: _machine("titan-x"), "x.toml", toml_of),
            (("machines", "{}/x.toml"),) * 3 + (("train", "alexnet", "--machine", "{}/x.toml", "--batch", "4"),),
        ),
        FileType(
            "targets",
            _tree(_targets, "x.toml", toml_of),
            (("run", trace, "--targets", "{}/x.toml", "--scheme", "buddy", "--sensitivity", "none"),),
        ),
        FileType(
            "study",
            _tree(_study, "x.toml", toml_of),
            (
                ("sweep", "{}/x.toml", "--dry-run", "--store", "{}/store"),
                (
                    "diff",
                    "{}/x.toml",
                    "p100-nvlink2",
                ),
            ),
        ),
        FileType(
            "jobs",
            _tree(lambda: _JOBS, "x.toml", toml_of),
            (("sweep", trace, "--slurm", "{}/x.toml", "--dry-run", "--store", "{}/store"),),
        ),
        FileType(
            "network",
            _tree(_network, "x.toml", toml_of),
            (("networks", "show", "{}/x.toml", "--batch", "4"), ("train", "{}/x.toml", "--batch", "4")),
        ),
        FileType(
            "plan",
            _tree(_plan, "x.toml", toml_of),
            (("train", "alexnet", "--batch", "4", "--machine", "titan-x", "--scheme", "plan", "--plan", "{}/x.toml"),),
        ),
        FileType(
            "plan-of-blocks",
            _tree(lambda: _PLAN, "x.toml", toml_of),
            (
                (
                    *("train", str(AGAINST / "llama.json"), "--machine", "a100-40", "--batch", "1", "--sequence", "8"),
                    *("--scheme", "plan", "--plan", "{}/x.toml"),
                ),
            ),
        ),
        FileType(
            "calibration",
            _text(lambda: (COSTS / "fitted" / "titan-x-cudnn5.toml").read_text(), "x.toml"),
            ((*_TRAIN, "baseline-p", "--calibration", "{}/x.toml"),),
        ),
        FileType(
            "calibration-tree",
            _tree(lambda: tomllib.loads((COSTS / "fitted" / "titan-x-cudnn5.toml").read_text()), "x.toml", toml_of),
            ((*_TRAIN, "baseline-p", "--calibration", "{}/x.toml"),),
        ),
        FileType(
            "timings",
            _text(_timings, "x.csv"),
            (("calibrate", "{}/x.csv", "--machine", "titan-x", "--library", "cudnn5", "-o", "{}/out"),),
        ),
        FileType(
            "densities",
            _tree(lambda: _DENSITIES, "x.toml", toml_of),
            ((*_TRAIN, "cdma", "--density-table", "{}/x.toml"),),
        ),
        FileType(
            "densities-csv", _text(lambda: _DENSITIES_CSV, "x.csv"), ((*_TRAIN, "cdma", "--density-table", "{}/x.csv"),)
        ),
        FileType("activations", lambda: _changed_maps("x.maps"), ((*_TRAIN, "cdma", "--activations", "{}/x.maps"),)),
        FileType(
            "activations-part", lambda: _changed_maps("x.incomplete"), (("recover", "{}/x.incomplete", "-o", "{}/out"),)
        ),
        FileType(
            "operator-graph",
            _tree(lambda: json.loads((ROOT / "traces" / "fashion-cnn.graph.json").read_text()), "x.json", json_of),
            (("networks", "show", "{}/x.json", "--batch", "4"), ("train", "{}/x.json", "--batch", "4")),
        ),
        FileType(
            "profiler-trace",
            _tree(_profiler_trace, "x.json", json_of),
            (("train", str(AGAINST / "llama.json"), "--machine", "a100-40", "--batch", "3", "--against", "{}/x.json"),),
        ),
        FileType(
            "replay-result",
            _tree(lambda: _result("run"), "x.json", json_of),
            (("diff", "{}/x.json:ideal", "{}/x.json:buddy"),) * 2
            + (("plot", "overview", "{}/x.json", "-o", "{}/out.svg"),),
        ),
        FileType(
            "training-result",
            _tree(lambda: _result("train"), "x.json", json_of),
            (("diff", "{}/x.json:baseline-p", "{}/x.json:vdnn-dyn"),) * 5
            + (("plot", "stalls", "{}/x.json", "-o", "{}/out.svg"),),
        ),
        FileType(
            "stored-result",
            _changed_store,
            (
                ("results", "--store", "{}/store"),
                ("results", "--store", "{}/store", "--compact"),
                ("results", "--store", "{}/store", "-o", "{}/out.csv"),
            ),
        ),
        FileType("accelsim", _accelsim, (("import", "accelsim", "{}/kernelslist.g", "-o", "{}/out"),)),
        FileType("opencl", lambda: _changed_folder(_bundle), (("convert", "{}", "{}/out"),)),
        FileType("archive", _archives, (("convert", "{}/x.tar", "{}/out"),)),
        FileType(
            "torch-part",
            lambda: _changed_folder(_spool, "x.bin.incomplete/"),
            (("recover", "{}/x.bin.incomplete", "-o", "{}/out.bin"),),
        ),
    )


TYPES = _types()


def command_line(command: tuple[str, ...], folder: Path) -> list[str]:
    """Return the arguments of a command whose files are in a folder."""
    return [_trace_path() if word == "TRACE" else word.replace("{}", str(folder)) for word in command]
