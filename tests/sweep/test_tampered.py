"""Records whose checksum is right and whose content somebody changed: each command that reads a store says one line."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from buddysim.sweep import compaction
from buddysim.sweep.point import SweepPoint
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import StoredResult, make_record
from tests.fuzz.promise import keeps_its_promise
from tests.trace.builders import write_small

pytest.importorskip("duckdb", reason="needs pip install 'buddysim[sweep]'")

WRONG: tuple[Any, ...] = (None, True, "x", "", -1, 1e308, 2**70, [1], {"a": 1})
ENGINES = ("replay", "training", "analysis")
STUDIES = {
    "replay": 'engine = "replay"\n[set]\ntrace = "{}"\nscheme = "buddy"\n',
    "training": 'engine = "training"\n[set]\nnetwork = "alexnet-cifar10"\nbatch = 2\nscheme = "vdnn-all-m"\n',
    "analysis": 'engine = "analysis"\n[set]\ntrace = "{}"\nanalysis = "ratio"\n',
}
#: STUDY, KEY, STORE and OUT stand for paths and for the result's key.
COMMANDS = (
    "results",
    "results --all-versions",
    "results --where seconds>0",
    "results --sql SELECT * FROM every_result",
    "results -o OUT/t.csv",
    "results --compact",
    "results --prune --yes",
    "diff KEY KEY",
    "diff STUDY STUDY",
    "report STORE -o OUT/r.html",
    "plot sweep STUDY -o OUT/f",
    "sweep STUDY --dry-run",
)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[StoredResult, str]]:
    """Return a record and a study of each engine."""
    trace = str(write_small(tmp_path_factory.mktemp("trace") / "t.bin", 4))
    settings: dict[str, dict[str, Any]] = {
        "replay": {"trace": trace, "scheme": "buddy"},
        "training": {"network": "alexnet-cifar10", "batch": 2, "scheme": "vdnn-all-m"},
        "analysis": {"trace": trace, "analysis": "ratio"},
    }
    made = {}
    for engine in ENGINES:
        point = SweepPoint(engine, settings[engine])
        record = make_record(point, point.sweep_engine.simulate(point.settings), 0.01, 10**8)
        made[engine] = record, STUDIES[engine].format(trace)
    return made


def tampered(record: StoredResult, few: bool = True) -> Iterator[tuple[str, StoredResult]]:
    """Give the record with one value of it changed, and where; `few`: each value once, with one wrong value."""
    columns = ("engine", "model_version", "trace", "network", "scheme", "analysis", "batch", "machine", "time_ps",
               "time_ms", "seconds", "peak_rss_bytes", "baseline", "content",
               "settings_hash", "sizes", "title")  # fmt: skip
    names = [("row", name) for name in columns if name in record.row]
    results = (*list(record.result)[:3], "provenance", "columns", "rows", "notes", "title", "time_ps", "time_ms")
    names += [("result", name) for name in results if name in record.result]
    for number, (part, name) in enumerate(names):
        for value in WRONG[number % len(WRONG) :: len(WRONG)] if few else WRONG:
            changed: Any = {part: {**getattr(record, part), name: value}}
            yield f"{part}.{name}", replace(record, **changed)
    for part in ("row", "result", "measured", "identity"):
        for value in ({}, "x", [1], None):
            yield part, replace(record, **{part: value})  # type: ignore[arg-type]


def run(command: str, folder: Path, record: StoredResult) -> None:
    words = {"STUDY": str(folder / "s.toml"), "KEY": record.key, "STORE": str(folder / "store"), "OUT": str(folder)}
    head, _, query = command.partition(" --sql ")
    arguments = [words.get(word, word.replace("OUT/", f"{folder}/")) for word in head.split()]
    arguments += ["--sql", query] if query else []
    arguments += [] if arguments[0] == "report" else ["--store", str(folder / "store")]
    keeps_its_promise(arguments, io.StringIO())


def write(folder: Path, record: StoredResult, study: str, compacted: bool) -> None:
    folder.mkdir()
    (folder / "s.toml").write_text(study)
    store = Store.at(folder / "store")
    store.check_writable()
    store.put(record)
    if compacted:
        compaction.compact(store)
        compaction.compact(store, visible_after_s=0)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_tampered_record_is_one_line_for_every_command(
    engine: str, records: dict[str, tuple[StoredResult, str]], tmp_path: Path
) -> None:
    record, study = records[engine]
    faults = []
    for number, (where, changed) in enumerate(tampered(record)):
        write(tmp_path / str(number), changed, study, compacted=number % 4 == 3)
        # Every command on some, some commands on every one: ten seconds of processor time.
        for command in COMMANDS[number % 3 :: 3]:
            try:
                run(command, tmp_path / str(number), changed)
            except AssertionError as error:
                faults.append(f"{where}: {command}: {str(error)[:300]}")
    assert faults == []


def test_tampered_records_in_one_store_keep_no_command_from_the_others(
    records: dict[str, tuple[StoredResult, str]], tmp_path: Path
) -> None:
    record, study = records["training"]
    write(tmp_path / "one", replace(record, row={**record.row, "engine": "nonsense"}), study, compacted=False)
    for command in COMMANDS:
        run(command, tmp_path / "one", record)
