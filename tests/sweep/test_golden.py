"""Results change only with a new model version, as stored results of the same version are reused."""

from __future__ import annotations

import json

import pytest

from buddysim.sweep.engines import NAMES, find
from tests.sweep.golden import CASES, FILE

GOLDEN = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_model_version(name: str) -> None:
    version = find(name).model_version()
    assert GOLDEN[name]["model_version"] == version, "a new model version: write golden.json anew"
    digests = dict(CASES[name]())
    changed = [case for case, value in digests.items() if GOLDEN[name]["results"].get(case) != value]
    assert not changed, (
        f"these changed: raise MODEL_VERSION of buddysim/{name}/version.py, then python -m tests.sweep.golden"
    )
    assert digests.keys() == GOLDEN[name]["results"].keys()
