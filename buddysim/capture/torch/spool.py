"""What a captured script leaves behind while it runs: a folder that outlives it, whatever ends it.

Each file appears whole (written under another name, then renamed): `graph.json`, `snapshot-N.npz` for iteration N, and
`progress.json`, the last iteration that was completed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buddysim.base.atomic import write_whole
from buddysim.base.errors import BuddysimError
from buddysim.capture.sampling import PAGE_BYTES, sampled_pages
from buddysim.compress import entry_classes
from buddysim.formats.operator_graph import OperatorGraph, load_operators


@dataclass(frozen=True)
class Seen:
    """A storage in a snapshot: its name, role and size; size classes of all entries; some pages, or all (None)."""

    name: str
    role: str
    bytes: int
    classes: npt.NDArray[np.uint8]
    pages: npt.NDArray[np.uint32] | None
    data: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Moment:
    """A snapshot: the iteration, its loss, what was seen."""

    iteration: int
    loss: float | None
    seen: tuple[Seen, ...]


@dataclass(frozen=True)
class Progress:
    """How far the training came: iterations begun, completed; whether the script ended by itself; what went wrong."""

    iterations: int = 0
    finished: bool = False
    problem: str = ""


def look_at(name: str, role: str, data: npt.NDArray[np.uint8], contents_bytes: int) -> Seen:
    """A storage's bytes as a snapshot keeps them: sizes of all, about `contents_bytes` of the bytes."""
    classes = entry_classes(data)
    if data.size <= contents_bytes:
        return Seen(name, role, data.size, classes, None, data.copy())
    if not contents_bytes:
        return Seen(name, role, data.size, classes, np.empty(0, np.uint32), np.empty(0, np.uint8))
    pages = sampled_pages(data.size, contents_bytes, 0)
    parts = [data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] for page in pages.astype(np.int64)]
    return Seen(name, role, data.size, classes, pages, np.concatenate(parts))


class Spool:
    """The folder.

    Parameters
    ----------
    folder : of a capture; made where it isn't there
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, output: Path) -> Spool:
        """An empty folder beside the trace file that will be made of it."""
        spool = cls(output.with_name(f"{output.name}.capture"))
        shutil.rmtree(spool.folder, ignore_errors=True)
        try:
            spool.folder.mkdir()
        except OSError as error:
            raise BuddysimError(f"{spool.folder}: can't be made: {error.strerror}") from None
        return spool

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, moment: Moment) -> None:
        """Writes a snapshot."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        heads = []
        for number, seen in enumerate(moment.seen):
            heads.append([seen.name, seen.role, seen.bytes, seen.pages is None])
            arrays[f"classes{number}"], arrays[f"data{number}"] = seen.classes, seen.data
            if seen.pages is not None:
                arrays[f"pages{number}"] = seen.pages
        head = json.dumps({"iteration": moment.iteration, "loss": moment.loss, "seen": heads})
        arrays["head"] = np.frombuffer(head.encode(), np.uint8)

        def write(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]

        write_whole(self._moment(moment.iteration), write)

    def drop(self, iteration: int) -> None:
        self._moment(iteration).unlink(missing_ok=True)

    def keep_graph(self, graph: OperatorGraph) -> None:
        write_whole(self.folder / "graph.json", lambda path: path.write_bytes(graph.to_json()))

    def say(self, progress: Progress) -> None:
        write_whole(self.folder / "progress.json", lambda path: path.write_text(json.dumps(asdict(progress))))

    @property
    def iterations(self) -> list[int]:
        """Iterations of the snapshots that are there."""
        return sorted(int(path.stem.partition("-")[2]) for path in self.folder.glob("snapshot-*.npz"))

    def moment(self, iteration: int) -> Moment:
        try:
            with np.load(self._moment(iteration)) as arrays:
                head = json.loads(arrays["head"].tobytes())
                seen = tuple(
                    Seen(
                        name,
                        role,
                        size,
                        arrays[f"classes{number}"],
                        None if whole else arrays[f"pages{number}"],
                        arrays[f"data{number}"],
                    )
                    for number, (name, role, size, whole) in enumerate(head["seen"])
                )
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise BuddysimError(f"{self._moment(iteration)}: not a snapshot of a capture: {error}") from None
        return Moment(head["iteration"], head["loss"], seen)

    def graph(self) -> OperatorGraph | None:
        path = self.folder / "graph.json"
        return load_operators(path) if path.exists() else None

    def progress(self) -> Progress:
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Progress(**json.loads((self.folder / "progress.json").read_text()))
        return Progress()

    def _moment(self, iteration: int) -> Path:
        return self.folder / f"snapshot-{iteration}.npz"
