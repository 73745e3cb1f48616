"""The spool: a folder that a captured script writes while it runs, and that survives the script.

Each file appears complete (written under another name, then renamed): `graph.json`, `snapshot-N.npz` for iteration N,
and `progress.json`, the last completed iteration.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.base.errors import BuddysimError
from buddysim.base.output import INCOMPLETE, write_bytes, write_text, write_with
from buddysim.base.parsers.npz import read_arrays, write_arrays
from buddysim.base.schema import Schema, checked
from buddysim.base.textfile import decoded, parse_json, read_json
from buddysim.capture.page_sampling import sampled_pages
from buddysim.compress import DEFAULT, entry_classes
from buddysim.formats.operator_graph import OperatorGraph, load_operators
from buddysim.trace.format import PAGE_BYTES

_SNAPSHOT_FILE = "snapshot of a capture"
_SNAPSHOT = re.compile(r"snapshot-([0-9]{1,18})\.npz", re.ASCII)


@dataclass(frozen=True)
class StorageContents:
    """A storage in a snapshot: its name, role and size; size classes of all entries; some pages, or all (None)."""

    name: str
    role: str
    bytes: int
    classes: npt.NDArray[np.uint8]
    pages: npt.NDArray[np.uint32] | None
    data: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class SpooledSnapshot:
    """Contents of storages in an iteration, its loss, and the compressor of the size classes."""

    iteration: int
    loss: float | None
    storages: tuple[StorageContents, ...]
    compressor: str = DEFAULT


@dataclass(frozen=True)
class Progress:
    """Progress of the training: completed iterations, whether the script ended by itself, problems."""

    iterations: int = 0
    finished: bool = False
    problem: str = ""


class SpooledHead(Schema):
    """The head of a snapshot: of each storage its name, role, size, and whether all of its pages are there."""

    iteration: Annotated[int, Field(ge=0)]
    loss: float | None
    compressor: str
    storages: list[Annotated[tuple[str, str, Annotated[int, Field(ge=0)], bool], Field(strict=False)]]


class ProgressFields(Schema):
    """The file of the progress."""

    iterations: int = 0
    finished: bool = False
    problem: str = ""


def storage_contents(
    name: str, role: str, data: npt.NDArray[np.uint8], contents_bytes: int, compressor: str = DEFAULT
) -> StorageContents:
    """Return a storage's contents for a snapshot: size classes of all entries, and about `contents_bytes` bytes."""
    classes = entry_classes(data, compressor)
    if data.size <= contents_bytes:
        return StorageContents(name, role, data.size, classes, None, data.copy())
    if not contents_bytes:
        return StorageContents(name, role, data.size, classes, np.empty(0, np.uint32), np.empty(0, np.uint8))
    pages = sampled_pages(data.size, contents_bytes, 0)
    parts = [data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] for page in pages.astype(np.int64)]
    return StorageContents(name, role, data.size, classes, pages, np.concatenate(parts))


class Spool:
    """The spool folder.

    Parameters
    ----------
    folder : of one capture
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def for_trace(cls, output: Path) -> Spool:
        """Create an empty spool next to its future trace file."""
        spool = cls(output.with_name(f"{output.name}{INCOMPLETE}"))
        try:
            spool.folder.mkdir()
        except FileExistsError:
            raise BuddysimError(
                f"{spool.folder}: is what an interrupted capture left: take it with 'python -m buddysim recover', "
                "or delete it"
            ) from None
        except OSError as error:
            raise BuddysimError(f"{spool.folder}: can't be made: {error.strerror}") from None
        return spool

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, snapshot: SpooledSnapshot) -> None:
        """Write a snapshot."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        heads = []
        for number, storage in enumerate(snapshot.storages):
            heads.append([storage.name, storage.role, storage.bytes, storage.pages is None])
            arrays[f"classes{number}"], arrays[f"data{number}"] = storage.classes, storage.data
            if storage.pages is not None:
                arrays[f"pages{number}"] = storage.pages
        head = json.dumps(
            {
                "iteration": snapshot.iteration,
                "loss": snapshot.loss,
                "compressor": snapshot.compressor,
                "storages": heads,
            }
        )
        arrays["head"] = np.frombuffer(head.encode(), np.uint8)

        def write(path: Path) -> None:
            with path.open("wb") as file:
                write_arrays(file, arrays)

        write_with(self._path(snapshot.iteration), write)

    def drop(self, iteration: int) -> None:
        self._path(iteration).unlink(missing_ok=True)

    def keep_graph(self, graph: OperatorGraph) -> None:
        write_bytes(self.folder / "graph.json", graph.to_json())

    def write_progress(self, progress: Progress) -> None:
        write_text(self.folder / "progress.json", json.dumps(asdict(progress)))

    @property
    def is_one(self) -> bool:
        """Whether the folder has any file of a spool."""
        names = ("settings.json", "progress.json", "graph.json")
        return bool(self.iterations) or any((self.folder / name).is_file() for name in names)

    @property
    def iterations(self) -> list[int]:
        """Iterations of the existing snapshots."""
        names = (_SNAPSHOT.fullmatch(path.name) for path in self.folder.glob("snapshot-*.npz"))
        return sorted(int(name.group(1)) for name in names if name)

    def snapshot(self, iteration: int) -> SpooledSnapshot:
        path = self._path(iteration)
        arrays = read_arrays(path, _SNAPSHOT_FILE)
        try:
            return _snapshot(arrays)
        except BuddysimError as error:
            raise BuddysimError(f"{path}: not a {_SNAPSHOT_FILE}: {error}") from None

    def graph(self) -> OperatorGraph | None:
        path = self.folder / "graph.json"
        return load_operators(path) if path.exists() else None

    def progress(self) -> Progress:
        path = self.folder / "progress.json"
        with contextlib.suppress(BuddysimError):
            fields = checked(ProgressFields, read_json(path, "progress of a capture", 1 << 16), str(path))
            return Progress(fields.iterations, fields.finished, fields.problem)
        return Progress()

    def _path(self, iteration: int) -> Path:
        return self.folder / f"snapshot-{iteration}.npz"


def _snapshot(arrays: Mapping[str, npt.NDArray[Any]]) -> SpooledSnapshot:
    """Return the snapshot of a file's arrays."""
    head = _array(arrays, "head", np.uint8).tobytes()
    fields = checked(SpooledHead, parse_json(decoded(head, "head"), "head"), "head")
    storages = []
    for number, (name, role, size, whole) in enumerate(fields.storages):
        pages = None if whole else _array(arrays, f"pages{number}", np.uint32)
        classes, data = (_array(arrays, f"{what}{number}", np.uint8) for what in ("classes", "data"))
        storages.append(StorageContents(name, role, size, classes, pages, data))
    return SpooledSnapshot(fields.iteration, fields.loss, tuple(storages), fields.compressor)


def _array(arrays: Mapping[str, npt.NDArray[Any]], name: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
    array = arrays.get(name)
    if array is None:
        raise BuddysimError(f"{name} is missing")
    if array.dtype != dtype or array.ndim != 1:
        raise BuddysimError(f"{name} has {array.ndim} axes of {array.dtype}")
    return array
