"""Commands keep their promise on 1,000 files of each type (slow), and on the saved cases."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.fuzz.case import cases, check
from tests.fuzz.file_types import TYPES, Files, FileType

CASES = int(os.environ.get("BUDDYSIM_FUZZ_CASES", "1000"))
SAVED_CASES = Path(__file__).parent / "saved_cases"


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_files_of_a_type_keep_the_promise(kind: FileType, tmp_path: Path) -> None:
    codes: set[int] = set()

    @seed(1)
    @settings(
        max_examples=CASES,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(cases(kind))
    def run(case: tuple[Files, tuple[str, ...]]) -> None:
        codes.add(check(tmp_path / "case", *case))

    run()
    assert codes == {0, 2}, f"of {CASES} files none was {'accepted' if 0 not in codes else 'refused'}"


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
