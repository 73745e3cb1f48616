"""The mutants: each can be applied, names tests that are there, and counts as killed only where a test failed."""

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
        assert mutant.killed_by, mutant.name
        for test in mutant.killed_by:
            assert (ROOT / test.partition("::")[0]).exists(), (mutant.name, test)


def test_text_that_is_not_there_once_is_refused(tool):
    mutant = tool.Mutant("x", "base", "", "buddysim/base/memory_pool.py", "nowhere", "", ("tests/base",))
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutant.text()


def test_every_number_of_the_dram_timing_is_a_mutant(tool):
    names = {mutant.name for mutant in tool.generated()}
    assert {f"number-{name}" for name in ("rcd", "rp", "cl", "cwl", "ras", "wr", "rtp", "rfc")} <= names


def test_the_rate_counts_what_tests_noticed(tool):
    def mutant(name: str, survives: str = ""):
        return tool.Mutant(name, "base", "a mechanism", "f", "o", "n", ("tests/base",), survives)

    def verdict(name: str, text: str):
        return tool.Verdict(name, text)

    killed = [mutant(f"k{i}") for i in range(19)]
    verdicts = [verdict(one.name, "killed") for one in killed]
    lines, met = tool.summary([*killed, mutant("s", "equal")], [*verdicts, verdict("s", "survived")])
    assert met
    assert lines[0].startswith("19 of 20 mutants killed (95.0%")
    assert "equal" in lines[1]
    _, met = tool.summary([*killed, mutant("s")], [*verdicts, verdict("s", "survived")])
    assert not met  # nothing explains it
    _, met = tool.summary(
        [*killed[:18], mutant("s", "e"), mutant("t", "e")],
        [*verdicts[:18], verdict("s", "survived"), verdict("t", "does not build")],
    )
    assert not met
