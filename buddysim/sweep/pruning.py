"""Files in a store that older versions, killed processes or damage left."""

from __future__ import annotations

import time
from pathlib import Path

from buddysim.sweep.compaction import read_part
from buddysim.sweep.engines import NAMES, find
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import DamagedResultError, NewerResultError, row_of

#: Age, in seconds without a write, from which a file belongs to no running process.
ABANDONED_S = 24 * 3600.0


def find_old(store: Store) -> dict[str, list[Path]]:
    """Files that can go, by the reason; what a newer version wrote stays."""
    files: dict[str, list[Path]] = {}
    versions = {name: find(name).model_version() for name in NAMES}
    for name in sorted(store.singles()):
        path = store.path_of(name)
        try:
            row = row_of(store.body(name).split(b"\n", 1)[0])
        except DamagedResultError:
            files.setdefault("damaged", []).append(path)
            continue
        except (NewerResultError, FileNotFoundError):
            continue
        engine, version = row["engine"], row["model_version"]
        if engine in versions and version < versions[engine]:
            reason = f"{engine}: model version {version}, now it is {versions[engine]}"
            files.setdefault(reason, []).append(path)
    for part in store.part_names():
        reason = _only_old(store, part, versions)
        if reason:
            files.setdefault(reason, []).append(store.parts / part)
    for path in sorted(store.unfinished.glob("*")):
        if time.time() - path.stat().st_mtime > ABANDONED_S:
            files.setdefault("unfinished for more than a day", []).append(path)
    return files


def _only_old(store: Store, part: str, versions: dict[str, int]) -> str:
    """Why a part can go: all of its results are of older versions; else nothing."""
    columns = read_part(store.parts / part, {"engine": str, "model_version": int})
    rows = zip(columns["engine"], columns["model_version"], strict=True)
    if all(version < versions.get(engine, 0) for engine, version in rows):
        return "compacted results of older model versions"
    return ""
