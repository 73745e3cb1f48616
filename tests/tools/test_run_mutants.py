"""Each mutant can be applied, names existing tests, and counts as killed only if a test failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.test_tools import load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    return load("run_mutants")


def test_every_mutant_changes_its_file_and_names_tests(tool):
    mutants = tool.every_mutant()
    assert len(mutants) >= 60
    for mutant in mutants:
        assert mutant.text() != (ROOT / mutant.file).read_text(encoding="utf-8"), mutant.name
        assert mutant.killed_by or mutant.survives, mutant.name
        for test in mutant.killed_by:
            assert (ROOT / test.partition("::")[0]).exists(), (mutant.name, test)


def test_text_that_does_not_occur_once_is_an_error(tool):
    mutant = tool.Mutant("x", "base", "", "buddysim/base/memory_pool.py", "nowhere", "", ("tests/base",))
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutant.text()


def test_every_dram_timing_is_a_mutant(tool):
    names = {mutant.name for mutant in tool.generated()}
    assert {f"number-{name}" for name in ("rcd", "rp", "cl", "cwl", "ras", "wr", "rtp", "rfc")} <= names


def test_kill_rate_counts_failed_tests_only(tool):
    def mutant(name: str, survives: str = ""):
        return tool.Mutant(name, "base", "a mechanism", "f", "o", "n", ("tests/base",), survives)

    def result(name: str, outcome: str):
        return tool.MutantResult(name, outcome)

    killed = [mutant(f"k{i}") for i in range(19)]
    results = [result(entry.name, "killed") for entry in killed]
    lines, is_reached = tool.summary([*killed, mutant("s", "equal")], [*results, result("s", "survived")])
    assert is_reached
    assert lines[0].startswith("19 of 20 mutants killed (95.0%")
    assert "equal" in lines[1]
    _, is_reached = tool.summary([*killed, mutant("s")], [*results, result("s", "survived")])
    assert not is_reached  # nothing explains it
    _, is_reached = tool.summary(
        [*killed[:18], mutant("s", "e"), mutant("t", "e")],
        [*results[:18], result("s", "survived"), result("t", "does not build")],
    )
    assert not is_reached
