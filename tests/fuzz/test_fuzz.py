"""Commands keep their promise on files of each type, on the corpus and on the saved cases."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.case import cases, check, check_reader
from tests.fuzz.corpus import FOLDER, Corpus
from tests.fuzz.file_types import TYPES, Files, FileType
from tests.fuzz.readers import READERS

CASES = int(os.environ.get("BUDDYSIM_FUZZ_CASES", "120"))
SAVED_CASES = Path(__file__).parent / "saved_cases"


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_files_of_a_type_keep_the_promise(kind: FileType, tmp_path: Path) -> None:
    accepted: set[bool] = set()
    n_cases = max(20, CASES // kind.cost)

    @seed(1)
    @settings(
        max_examples=n_cases,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(cases(kind), st.integers(0, 47))
    def run(case: tuple[Files, tuple[str, ...]], whole: int) -> None:
        accepted.add(check_reader(tmp_path / "case", kind, *case, whole).accepted)

    run()
    assert accepted == {True, False}, f"of {n_cases} files none was {'refused' if accepted == {True} else 'accepted'}"


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_readers_keep_the_promise_on_the_corpus(kind: FileType, tmp_path: Path) -> None:
    if kind.name not in READERS:
        pytest.skip("read by whole commands alone")
    for files, command in Corpus(kind.name).read():
        check_reader(tmp_path / "case", kind, files, command, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_commands_keep_the_promise_on_the_corpus(kind: FileType, tmp_path: Path) -> None:
    for files, command in Corpus(kind.name).read():
        check(tmp_path / "case", files, command)


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1 << 20
    assert {path.name.partition(".")[0] for path in FOLDER.iterdir()} == {kind.name for kind in TYPES}


@pytest.mark.parametrize(
    "folder", sorted(SAVED_CASES.iterdir()) if SAVED_CASES.is_dir() else [], ids=lambda folder: folder.name
)
def test_saved_cases_keep_the_promise(folder: Path, tmp_path: Path) -> None:
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "command.json"
    }
    check(tmp_path / "case", files, tuple(json.loads((folder / "command.json").read_text())))
