"""The rows of a store read from its files: for tables where DuckDB is not installed."""

from __future__ import annotations

from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.sweep.engines import NAMES, find
from buddysim.sweep.store import Store

Row = dict[str, Any]


def read_rows(store: Store, all_versions: bool = False) -> list[Row]:
    """Return a row for each result, in the order of engines and keys, with times relative to the baseline's.

    Parameters
    ----------
    all_versions : rows of older model versions, too

    Raises
    ------
    BuddysimError
        where there are no results
    """
    records = [store.get(key) for key in sorted(store.all_keys())]
    rows = {record.key: dict(record.row) for record in records if record is not None}
    if not rows:
        raise BuddysimError(f"{store.folder}: no results: expected a store that a sweep wrote")
    engines = {name: find(name) for name in NAMES}
    shown = []
    for row in rows.values():
        engine = engines.get(row["engine"])
        if engine is None or not (all_versions or row["model_version"] == engine.model_version()):
            continue
        baseline_time = rows.get(str(row.get("baseline")), {}).get(engine.TIME)
        if engine.AGAINST is not None and baseline_time:
            row = row | {engine.AGAINST: row[engine.TIME] / baseline_time}
        shown.append(row)
    return sorted(shown, key=lambda row: (row["engine"], row["key"]))
