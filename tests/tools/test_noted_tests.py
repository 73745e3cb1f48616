"""A test is noted for a mutant exactly if the mutated expression has another value in it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.noted_tests import NotedTests, instrumented, run_and_note, with_probe
from tools.random_mutants import Source


@dataclass(frozen=True)
class Text:
    """A replacement."""

    name: str
    old: str
    new: str


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("y = 2 * (a < b)\n", "a < b", "a <= b", "y = 2 * (note_mutant('m', (a < b), lambda: (a <= b)))\n"),
        ("y = len(a) > 1\n", "> 1", "> 2", "y = note_mutant('m', (len(a) > 1), lambda: (len(a) > 2))\n"),
        ("y = a[-1]\n", "-1", "1", "y = note_mutant('m', (a[-1]), lambda: (a[1]))\n"),
        ("y = max(a, b)\n", "max", "min", "y = note_mutant('m', (max(a, b)), lambda: (min(a, b)))\n"),
        ("y = f(a) < b\n", "<", "<=", "y = note_mutant('m', (f(a) < b))\n"),
        ("y += b\n", "+=", "-=", "y += note_mutant('m', (b))\n"),
        ("class C:\n    y = a - b\n", "a - b", "a + b", "class C:\n    y = note_mutant('m', (a - b))\n"),
        (
            "y = [a for a in b if a < c]\n",
            "<",
            "<=",
            "y = [a for a in b if note_mutant('m', (a < c), lambda: (a <= c))]\n",
        ),
    ],
)
def test_an_expression_is_computed_twice_where_that_changes_nothing(
    text: str, old: str, new: str, expected: str
) -> None:
    assert instrumented(text, [Text("m", old, new)]) == expected


def test_two_mutants_of_one_expression_are_an_error() -> None:
    with pytest.raises(ValueError, match="expected one mutant in an expression"):
        instrumented("y = a + b < c\n", [Text("m", "+", "-"), Text("n", "<", "<=")])
    with pytest.raises(ValueError, match="expected a text within an expression"):
        with_probe(Source("def f(): pass\n"), Text("m", "pass", "break"))


def test_a_run_notes_tests_their_processes_and_their_failures(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    source = "def least(a, b):\n    return a if a < b else b\nLIMIT = 3 - 1\n"
    mutants = [Text("bound", "a < b", "a <= b"), Text("sign", "3 - 1", "3 + 1")]
    (tree / "made.py").write_text(instrumented(source, mutants), encoding="utf-8")
    (tree / "test_made.py").write_text(
        "import subprocess, sys\nfrom made import least\n"
        "def test_far(): assert least(1, 2) == 1\n"
        "def test_equal(): assert least(2, 2) == 2\n"
        f"def test_process(): subprocess.run([{sys.executable!r}, '-c', 'import made; made.least(1, 1)'], check=True)\n"
        "def test_wrong(): assert least(2, 2) == 3\n",
        encoding="utf-8",
    )
    noted = run_and_note(tree, ["test_made.py"], workers=0)
    assert noted.by_mutant["bound"] == [f"test_made.py::test_{name}" for name in ("equal", "process", "wrong")]
    assert noted.by_mutant["sign"] == ["", "test_made.py::test_process"]
    assert noted.failing == ["test_made.py::test_wrong"]
    assert noted.of("bound", 60.0) == ("test_made.py::test_equal", "test_made.py::test_process")


def test_short_tests_come_first_and_a_limit_leaves_out_long_ones() -> None:
    seconds = {"a.py::long": 9.0, "a.py::short": 1.0, "b.py::other": 4.0}
    noted = NotedTests({"m": [*seconds, ""]}, [], seconds)
    assert noted.of("m", 60.0) == ("a.py::short", "b.py::other", "a.py::long")
    assert noted.of("m", 5.0) == ("a.py::short", "b.py::other")
    assert noted.files_of("m", 5.0) == ("b.py",)
    assert noted.of("unknown", 60.0) == ()
