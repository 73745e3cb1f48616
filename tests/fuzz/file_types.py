"""The types of files that commands read: a valid file of each, its changes, and commands that read it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import lzma
import pickle
import random
import tarfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from hypothesis import strategies as st

from buddysim.base.sections.section_format import HEADER, SECTION
from buddysim.formats.activations import (
    layout,
)
from tests.fuzz import containers, good_files
from tests.fuzz.grammar import (
    Raw,
    changed_bytes,
    changed_text,
    json_of,
    mostly,
    near_or_changed,
    seeds,
    toml_of,
)
from tests.fuzz.near import near_text
from tests.fuzz.traces import damaged, grammar_traces
from tests.trace import damage

SAMPLES = good_files.ROOT / "tests" / "importers" / "accelsim" / "samples"

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
    cost : how many times longer than those of others its commands take; tests have fewer files of it
    """

    name: str
    files: Callable[[], st.SearchStrategy[Files]]
    commands: tuple[tuple[str, ...], ...]
    cost: int = 1


# Changed files


def _tree(good: Callable[[], Any], name: str, write: Callable[[Any], bytes], *, most: int = 4) -> Callable[[], Any]:
    """Generate a file as a changed tree, sometimes changed as a text."""

    def files() -> st.SearchStrategy[Files]:
        text = write(good()).decode()
        whole = mostly(near_or_changed(good(), most).map(write), changed_text(text))
        return whole.map(lambda data: {name: data})

    return files


def _text(good: Callable[[], str], name: str) -> Callable[[], st.SearchStrategy[Files]]:
    """Generate a file as a changed text, sometimes with changed bytes."""

    def files() -> st.SearchStrategy[Files]:
        text = good()
        near = seeds().map(lambda seed: near_text(text, random.Random(seed)).encode())
        whole = mostly(near | changed_text(text), changed_bytes(text.encode(), _scribble))
        return whole.map(lambda data: {name: data})

    return files


def _scribble(rng: random.Random, data: bytes) -> bytes:
    return damage.scribble(rng, data)


def _traces(name: str = "x.bin") -> Callable[[], st.SearchStrategy[Files]]:
    def change(rng: random.Random, data: bytes) -> bytes:
        return damaged(data, rng)[0]

    return lambda: changed_bytes(good_files.small_trace(), change).map(lambda data: {name: data})


def _from_grammar() -> st.SearchStrategy[Files]:
    return grammar_traces(good_files.folder()).map(lambda data: {"x.bin": data})


@st.composite
def _changed_maps(draw: st.DrawFn, name: str) -> Files:
    """Generate an activations file with changed sections and valid checksums, or with changed bytes."""
    data = good_files.maps()
    if not draw(st.integers(0, 7)):
        return {name: draw(changed_bytes(data, _scribble))}
    sections, at = [], HEADER.size
    while at < len(data):
        kind, _, length, _, _ = SECTION.unpack_from(data, at)
        sections.append((kind, data[at + SECTION.size : at + SECTION.size + length]))
        at += SECTION.size + length
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(sections) - 1))
        kind, payload = sections[number]
        if kind == layout.VALUES:
            payload = draw(changed_bytes(payload, _scribble))
        else:
            with contextlib.suppress(ValueError, RecursionError, zstandard.ZstdError):  # it may be changed already
                tree = json.loads(zstandard.ZstdDecompressor().decompress(payload))
                payload = zstandard.ZstdCompressor().compress(json_of(draw(near_or_changed(tree, 2))))
        sections[number] = (kind, payload)
        if not draw(st.integers(0, 5)):
            other = draw(st.integers(0, len(sections) - 1))
            sections[number], sections[other] = sections[other], sections[number]
    content = data[: HEADER.size]
    for kind, payload in sections:
        content += layout.SECTIONS.section(kind, payload)
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
            return mostly(near_or_changed(json.loads(data)).map(json_of), scribbled)
        if name.endswith(".jsonl"):
            rows = [json.loads(row) for row in data.decode().splitlines()]
            return mostly(near_or_changed(rows).map(_json_lines), changed_text(data.decode()))
        if name.endswith((".traceg", ".trace", "kernelslist", ".g")):
            text = data.decode()
            near = seeds().map(lambda seed: near_text(text, random.Random(seed)).encode())
            return mostly(near | changed_text(text), scribbled)
    if name.endswith(".xz"):
        with contextlib.suppress(lzma.LZMAError, EOFError):
            return mostly(
                changed_bytes(lzma.decompress(data), _scribble).map(lambda raw: lzma.compress(raw, preset=0)), scribbled
            )
    return scribbled


def _json_lines(rows: Any) -> bytes:
    return b"\n".join(map(json_of, rows)) if isinstance(rows, list) else json_of(rows)


def _configs() -> st.SearchStrategy[Files]:
    """Generate a model's configuration of any class."""
    trees = st.sampled_from(good_files.CONFIGS).flatmap(lambda name: near_or_changed(good_files.config(name)))
    return trees.map(lambda tree: {"x.json": json_of(tree)})


def _operator_rows() -> st.SearchStrategy[Files]:
    """Generate rows of measured operators of any kind."""
    return st.sampled_from(good_files.operator_rows()).flatmap(lambda text: _text(lambda: text, "x.csv")())


def _snapshots() -> st.SearchStrategy[Files]:
    """Generate a memory snapshot: a pickle of a changed tree, or changed bytes."""
    pickles = near_or_changed(good_files.snapshot()).map(lambda tree: pickle.dumps(_without_raw(tree)))
    whole = mostly(pickles, changed_bytes(pickle.dumps(good_files.snapshot()), _scribble))
    return whole.map(lambda data: {"x.pickle": data})


def _without_raw(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {str(key): _without_raw(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_without_raw(value) for value in tree]
    return str(tree) if isinstance(tree, Raw) else tree


@functools.cache
def _list_of(sample: str) -> Files:
    return {path.name: path.read_bytes() for path in sorted((SAMPLES / sample).iterdir())}


def _accelsim() -> st.SearchStrategy[Files]:
    """Generate a list with its kernels, of any version of the tracer, and a name that all have."""

    def named(files: Files) -> Files:
        return {"kernelslist.g" if name.startswith("kernelslist") else name: data for name, data in files.items()}

    samples = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
    return st.sampled_from(samples).flatmap(lambda sample: _changed_folder(lambda: named(_list_of(sample))))


_STRANGE_NAMES = ("/etc/x", "../x", "b", "\x1b[1m", "b/\u202e", "c/meta.jsonl")
_STRANGE_TYPES = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)


@st.composite
def _archives(draw: st.DrawFn) -> Files:
    """Generate an archive of a bundle with strange members, changed bytes, or another compression."""
    packed = io.BytesIO()
    strange = draw(st.integers(-6, 3))  # the member with a strange name or type; below 0: none
    with tarfile.open(
        fileobj=packed, mode=draw(st.sampled_from(("w", "w:gz", "w:xz"))), format=tarfile.PAX_FORMAT
    ) as archive:
        files = draw(_changed_folder(good_files.bundle)) if draw(st.booleans()) else good_files.bundle()
        for number, (name, data) in enumerate(files.items()):
            member = tarfile.TarInfo(f"b/{name}")
            member.size = len(data)
            if number == strange:
                member.name = draw(st.sampled_from((member.name, *_STRANGE_NAMES)))
                member.type = draw(st.sampled_from((tarfile.REGTYPE, *_STRANGE_TYPES)))
            member.linkname = "/etc/passwd"
            archive.addfile(member, io.BytesIO(data) if member.isfile() else None)
    return {"x.tar": draw(mostly(st.just(packed.getvalue()), changed_bytes(packed.getvalue(), _scribble)))}


@st.composite
def _changed_store(draw: st.DrawFn) -> Files:
    """Generate a stored result with a changed row or rest and a valid checksum, or with changed bytes."""
    name, row, rest = good_files.stored()
    which = draw(st.integers(0, 7))
    row_text = json_of(draw(near_or_changed(row)) if which % 2 else row)
    rest_text = json_of(draw(near_or_changed(rest)) if which % 2 == 0 else rest)
    packed = zstandard.ZstdCompressor().compress(row_text + b"\n" + rest_text + b"\n")
    whole = b"buddysim-result 1 %b %d\n" % (hashlib.sha256(packed).hexdigest().encode(), len(packed)) + packed
    if which == 7:
        whole = draw(changed_bytes(whole, _scribble))
    return {f"store/{name}": whole, "store/STORE": good_files.store_head()}


_RUN = ("run", "{}/x.bin", "--scheme", "ideal,bandwidth-compression,pinned-host", "--sensitivity", "none")
_TRAIN = ("train", "alexnet", "--batch", "4", "--scheme")
_LLAMA = ("train", str(good_files.AGAINST / "llama.json"), "--machine", "a100-40")


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
            _tree(lambda: good_files.machine("p100-nvlink2"), "x.toml", toml_of),
            (("machines", "{}/x.toml"),) * 7 + (("run", trace, "--machine", "{}/x.toml", "--scheme", "ideal"),),
        ),
        FileType(
            "training-machine",
            _tree(lambda: good_files.machine("titan-x"), "x.toml", toml_of),
            (("machines", "{}/x.toml"),) * 3 + (("train", "alexnet", "--machine", "{}/x.toml", "--batch", "4"),),
        ),
        FileType(
            "targets",
            _tree(good_files.targets, "x.toml", toml_of),
            (("run", trace, "--targets", "{}/x.toml", "--scheme", "buddy", "--sensitivity", "none"),),
        ),
        FileType(
            "study",
            _tree(good_files.study, "x.toml", toml_of),
            (
                ("sweep", "{}/x.toml", "--dry-run", "--store", "{}/store"),
                ("sweep", "{}/x.toml", "--workers", "1", "--store", "{}/store"),
                (
                    "diff",
                    "{}/x.toml",
                    "p100-nvlink2",
                ),
            ),
        ),
        FileType(
            "jobs",
            _tree(lambda: good_files.JOBS, "x.toml", toml_of),
            (("sweep", trace, "--slurm", "{}/x.toml", "--dry-run", "--store", "{}/store"),),
        ),
        FileType(
            "network",
            _tree(good_files.network, "x.toml", toml_of),
            (("networks", "show", "{}/x.toml", "--batch", "4"), ("train", "{}/x.toml", "--batch", "4")),
        ),
        FileType(
            "plan",
            _tree(good_files.plan, "x.toml", toml_of),
            (("train", "alexnet", "--batch", "4", "--machine", "titan-x", "--scheme", "plan", "--plan", "{}/x.toml"),),
        ),
        FileType(
            "plan-of-blocks",
            _tree(lambda: good_files.PLAN, "x.toml", toml_of),
            ((*_LLAMA, "--batch", "1", "--sequence", "8", "--scheme", "plan", "--plan", "{}/x.toml"),),
        ),
        FileType(
            "calibration",
            _text(good_files.calibration, "x.toml"),
            ((*_TRAIN, "baseline-p", "--calibration", "{}/x.toml"),),
        ),
        FileType(
            "calibration-tree",
            _tree(lambda: tomllib.loads(good_files.calibration()), "x.toml", toml_of),
            ((*_TRAIN, "baseline-p", "--calibration", "{}/x.toml"),),
        ),
        FileType(
            "operator-constants",
            _tree(good_files.operator_constants, "x.toml", toml_of),
            ((*_LLAMA, "--batch", "1", "--sequence", "8", "--scheme", "eager", "--calibration", "{}/x.toml"),),
        ),
        FileType(
            "operator-rows",
            _operator_rows,
            (("calibrate", "{}/x.csv", "--machine", "gh200", "-o", "{}/out"),),
            cost=3,
        ),
        FileType(
            "timings",
            _text(good_files.timings, "x.csv"),
            (("calibrate", "{}/x.csv", "--machine", "titan-x", "--library", "cudnn5", "-o", "{}/out"),),
        ),
        FileType(
            "densities",
            _tree(lambda: good_files.DENSITIES, "x.toml", toml_of),
            ((*_TRAIN, "cdma", "--density-table", "{}/x.toml"),),
        ),
        FileType(
            "densities-csv",
            _text(lambda: good_files.DENSITIES_CSV, "x.csv"),
            ((*_TRAIN, "cdma", "--density-table", "{}/x.csv"),),
        ),
        FileType("activations", lambda: _changed_maps("x.maps"), ((*_TRAIN, "cdma", "--activations", "{}/x.maps"),)),
        FileType(
            "activations-part", lambda: _changed_maps("x.incomplete"), (("recover", "{}/x.incomplete", "-o", "{}/out"),)
        ),
        FileType(
            "operator-graph",
            _tree(good_files.operator_graph, "x.json", json_of),
            (
                ("networks", "show", "{}/x.json", "--batch", "4"),
                ("train", "{}/x.json", "--batch", "4", "--machine", "a100-40", "--scheme", "eager"),
            ),
        ),
        FileType(
            "config",
            _configs,
            (("networks", "show", "{}/x.json"), ("train", "{}/x.json", "--machine", "a100-40", "--batch", "2")),
        ),
        FileType("snapshot", _snapshots, ((*_LLAMA, "--batch", "3", "--against", "{}/x.pickle"),)),
        FileType(
            "curves",
            _text(lambda: good_files.CURVES, "x.csv"),
            (("validate", "curves", "--machine", "v100", "--data", "{}/x.csv"),),
            cost=10,
        ),
        FileType(
            "kernels",
            _text(lambda: good_files.kernels("gv100_kernels.csv"), "x.csv"),
            (("validate", "kernels", "--data", "{}/x.csv"),),
            cost=3,
        ),
        FileType(
            "replays",
            _text(lambda: good_files.kernels("gv100_replays.csv"), "x.csv"),
            (("validate", "kernels", "--captures", "{}/x.csv"),),
        ),
        FileType(
            "profiler-trace",
            _tree(good_files.profiler_trace, "x.json", json_of),
            ((*_LLAMA, "--batch", "3", "--against", "{}/x.json"),),
        ),
        FileType(
            "replay-result",
            _tree(lambda: good_files.result("run"), "x.json", json_of),
            (
                ("diff", "{}/x.json:ideal", "{}/x.json:buddy"),
                ("plot", "overview", "{}/x.json", "-o", "{}/out.svg"),
                ("report", "{}/x.json", "-o", "{}/out.html"),
                ("train", "alexnet", "--scheme", "buddy-scaled", "--buddy-result", "{}/x.json"),
            ),
            cost=3,
        ),
        FileType(
            "training-result",
            _tree(lambda: good_files.result("train"), "x.json", json_of),
            (("diff", "{}/x.json:baseline-p", "{}/x.json:vdnn-dyn"),) * 5
            + (("plot", "stalls", "{}/x.json", "-o", "{}/out.svg"), ("report", "{}/x.json", "-o", "{}/out.html")),
        ),
        FileType(
            "timeline",
            _tree(good_files.timeline, "x.json", json_of),
            (("plot", "memory", "{}/x.json", "-o", "{}/out.svg"),),
            cost=3,
        ),
        FileType(
            "stored-result",
            _changed_store,
            (
                ("results", "--store", "{}/store"),
                ("results", "--store", "{}/store", "--compact"),
                ("results", "--store", "{}/store", "-o", "{}/out.csv"),
                ("report", "{}/store", "-o", "{}/out.html"),
            ),
            cost=5,
        ),
        FileType("accelsim", _accelsim, (("import", "accelsim", "{}/kernelslist.g", "-o", "{}/out"),)),
        FileType("opencl", lambda: _changed_folder(good_files.bundle), (("convert", "{}", "{}/out"),)),
        FileType("archive", _archives, (("convert", "{}/x.tar", "{}/out"),)),
        FileType("packed-archive", lambda: seeds().map(containers.archive), (("convert", "{}/x.tar", "{}/out"),)),
        FileType(
            "packed-snapshot",
            lambda: seeds().map(containers.snapshot),
            (("recover", "{}/x.bin.incomplete", "-o", "{}/out.bin"),),
        ),
        FileType(
            "packed-profile",
            lambda: seeds().map(containers.profile),
            ((*_LLAMA, "--batch", "3", "--against", "{}/x.json.gz"),),
        ),
        FileType(
            "torch-part",
            lambda: _changed_folder(good_files.spool, "x.bin.incomplete/"),
            (("recover", "{}/x.bin.incomplete", "-o", "{}/out.bin"),),
        ),
    )


TYPES = _types()


def command_line(command: tuple[str, ...], folder: Path) -> list[str]:
    """Return the arguments of a command whose files are in a folder."""
    return [good_files.trace_path() if word == "TRACE" else word.replace("{}", str(folder)) for word in command]
