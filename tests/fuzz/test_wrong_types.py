"""A field of a wrong type is one line: every field of the files that people write, in turn."""

from __future__ import annotations

import random
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import file_types
from tests.fuzz.case import check
from tests.fuzz.file_types import TYPES
from tests.fuzz.grammar import toml_of
from tests.fuzz.wrong_types import VALUES, with_wrong_types

TREES: dict[str, Callable[[], Any]] = {
    "study": file_types._study,
    "jobs": lambda: file_types._JOBS,
    "densities": lambda: file_types._DENSITIES,
    "network": file_types._network,
    "plan": file_types._plan,
    "targets": file_types._targets,
}
CASES = 40


def test_every_field_gets_every_value() -> None:
    tree = {"a": 1, "b": [{"c": 2}, {"c": 3}]}
    changed = list(with_wrong_types(tree))
    assert len(changed) == 4 * len(VALUES)  # a, b, the first of b, its c
    assert tree == {"a": 1, "b": [{"c": 2}, {"c": 3}]}


@pytest.mark.slow
@pytest.mark.parametrize("name", TREES)
def test_a_wrong_type_is_one_line(name: str, tmp_path: Path) -> None:
    if name in ("study", "jobs") and find_spec("dask_jobqueue") is None:
        pytest.skip("needs pip install 'buddysim[sweep]'")
    (kind,) = (kind for kind in TYPES if kind.name == name)
    cases = list(with_wrong_types(TREES[name]()))
    codes = set()
    for number, case in enumerate(random.Random(1).sample(cases, min(CASES, len(cases)))):
        command = kind.commands[number % len(kind.commands)]
        codes.add(check(tmp_path / "case", {"x.toml": toml_of(case)}, command))
    assert 2 in codes
