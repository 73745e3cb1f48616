"""Why points of a study have no result although the same settings were simulated before: what has changed since."""

from __future__ import annotations

from collections import Counter
from typing import Any

from buddysim.sweep.plan import SweepPlan
from buddysim.sweep.point import SweepPoint

_MOST = 20_000


def changes(plan: SweepPlan) -> list[str]:
    """A line for each reason, with the number of points; nothing without the index."""
    table = plan.table if plan.missing else None
    if table is None:
        return []
    missing = {point.settings_hash: point for point in map(plan.points.__getitem__, plan.missing[:_MOST])}
    texts = ", ".join(f"'{each}'" for each in missing)
    columns = "settings_hash, model_version, machine_checksum, content, key"
    query = f"SELECT {columns} FROM every_result WHERE settings_hash IN ({texts})"
    latest: dict[str, Any] = {row["settings_hash"]: row for row in table.sql(query).to_pylist()}
    reasons = Counter(
        _reason(missing[settings_hash], row)
        for settings_hash, row in latest.items()
        if row["key"] != missing[settings_hash].key
    )
    return [f"{count:,} points: {reason}: simulated again" for reason, count in reasons.items()]


def _reason(point: SweepPoint, row: dict[str, Any]) -> str:
    engine, identity = point.sweep_engine, point.identity
    if str(row["model_version"]) != identity["model_version"]:
        return f"model version {row['model_version']} made them, now it is {identity['model_version']}"
    if row["machine_checksum"] != identity["machine"]:
        return f"the machine {point.settings.get('machine') or engine.axes()['machine'].default} has changed"
    if row["content"] != identity[engine.SUBJECT]:
        return f"{engine.SUBJECT} {point.settings[engine.SUBJECT]} has changed"
    return "another file or plug-in that they read has changed"


def edited(plan: SweepPlan) -> str | None:
    """A line where results that count were made by other sources of the same model version; None: there are none."""
    from buddysim.sweep.stored_result import sources_checksum

    if not plan.n_stored or plan.table is None:
        return None
    engine = plan.study.engine
    query = f"SELECT key FROM results WHERE engine = '{engine}' AND sources <> '{sources_checksum(engine)}'"
    count = len(plan.points.keys() & plan.table.sql(query).column("key").to_pylist())
    if not count:
        return None
    return (
        f"{count:,} of the results were made by other sources of the {engine} engine, of the same model version: where "
        "you have changed what it computes, raise MODEL_VERSION, or give --rerun"
    )
