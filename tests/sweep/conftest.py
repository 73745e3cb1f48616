"""Stores for tests, and points that take milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from buddysim.sweep.point import SweepPoint
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import StoredResult, key_of, make_record

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write indexes of stores to a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("BUDDYSIM_STORE", raising=False)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an empty store."""
    made = Store.at(tmp_path / "store")
    made.check_writable()
    return made


@pytest.fixture(scope="session")
def small_record() -> StoredResult:
    """Return the record of a training that takes milliseconds."""
    point = SweepPoint("training", {"network": "alexnet-cifar10", "batch": 2, "scheme": "vdnn-all-m"})
    return make_record(point, point.sweep_engine.simulate(point.settings), 0.01, 10**8)


def named(record: StoredResult, number: int) -> StoredResult:
    """Return the same record under another key."""
    identity = {**record.identity, "batch": str(number)}
    key = key_of(identity)
    return StoredResult(key, identity, {**record.row, "key": key, "batch": number}, record.result, record.measured)


def stable(record: StoredResult | None) -> Any:
    """Return the parts of a record that are the same in every run."""
    assert record is not None
    return record.identity, record.result
