"""Notes in one run of quick tests which of them each random mutant can fail.

Every mutated expression of a copy of the sources is wrapped into a call that computes the mutant's value, too (weak
mutation: Howden 1982; all mutants in one source: Untch, Offutt and Harrold 1993). A test in which no value differs
passes with the mutant, and need not run. Where the value cannot be computed twice, each test that computes it is noted.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tools.random_mutants import Source

PROBE = Path(__file__).parent / "mutants" / "probe"
PURE = {"abs", "bool", "float", "int", "isinstance", "len", "max", "min", "range", "round", "sorted", "str", "sum"}
DURATION = re.compile(r"^([\d.]+)s (?:setup|call|teardown)\s+(\S.*)$", re.MULTILINE)
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - .*| \(.*)?$", re.MULTILINE)


class Replacement(Protocol):
    """What is needed of a mutant: a text of a file and its replacement."""

    @property
    def name(self) -> str: ...
    @property
    def old(self) -> str: ...
    @property
    def new(self) -> str: ...


@dataclass(frozen=True)
class NotedTests:
    """Tests by mutant, tests that fail without a mutant, and seconds by test.

    Attributes
    ----------
    by_mutant : names of tests, without parameters, whose values pytest may not read back; an empty name stands for
        what is computed while modules are imported
    failing : names of tests that fail without a mutant: they kill none
    seconds : of each test, or less than 0.005
    """

    by_mutant: Mapping[str, Sequence[str]]
    failing: Sequence[str]
    seconds: Mapping[str, float]

    def of(self, name: str, limit_s: float) -> tuple[str, ...]:
        """Return the tests that a mutant can fail, the shortest first, until they take as long as given."""
        tests = [test for test in self.by_mutant.get(name, ()) if test and test not in self.failing]
        return self._within(sorted(tests, key=lambda test: self.seconds.get(test, 0.0)), limit_s)

    def files_of(self, name: str, limit_s: float) -> tuple[str, ...]:
        """Return their files, whose other tests may have the mutant's result from a fixture or a cache."""
        files = {test.partition("::")[0] for test in self.by_mutant.get(name, ()) if test}
        return self._within(sorted(files, key=self.seconds_of_file), limit_s)

    def seconds_of_file(self, file: str) -> float:
        """Return how long the tests of a file take together."""
        return sum(seconds for test, seconds in self.seconds.items() if test.startswith(f"{file}::"))

    def _within(self, tests: Sequence[str], limit_s: float) -> tuple[str, ...]:
        chosen_tests, total = [], 0.0
        for test in tests:
            total += self.seconds.get(test, 0.0) if "::" in test else self.seconds_of_file(test)
            if chosen_tests and total > limit_s:
                break
            chosen_tests.append(test)
        return tuple(chosen_tests)


def with_probe(source: Source, mutant: Replacement) -> tuple[int, int, str]:
    """Return the expression that a mutant changes, by its offsets, and the call that replaces it."""
    base = source.text.index(mutant.old)
    before = _common(mutant.old, mutant.new)
    after = _common(mutant.old[before:][::-1], mutant.new[before:][::-1])
    start, end = base + before, base + len(mutant.old) - after
    node, scope = _innermost(source, start, end)
    first, last = source.span(node.value if isinstance(node, ast.AugAssign) else node)
    value = source.text[first:last]
    if isinstance(node, ast.AugAssign) or isinstance(scope, ast.ClassDef) or not _is_pure(node):
        return first, last, f"note_mutant({mutant.name!r}, ({value}))"
    mutated = value[: start - first] + mutant.new[before : len(mutant.new) - after] + value[end - first :]
    return first, last, f"note_mutant({mutant.name!r}, ({value}), lambda: ({mutated}))"


def _common(one: str, other: str) -> int:
    """Return with how many characters two texts begin alike."""
    return next(
        (at for at, (first, second) in enumerate(zip(one, other, strict=False)) if first != second),
        min(len(one), len(other)),
    )


def _innermost(source: Source, start: int, end: int) -> tuple[ast.expr | ast.AugAssign, ast.AST]:
    """Return the smallest expression around a text (a limit's comparison, a function's call), and its scope."""
    innermost: ast.expr | ast.AugAssign | None = None
    scope: ast.AST = source.tree
    node: ast.AST | None = source.tree
    while node is not None:
        called = node.func if isinstance(node, ast.Call) else None
        is_number = isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
        is_limit = is_number and (
            isinstance(innermost, (ast.Compare, ast.Call))
            or (isinstance(innermost, ast.Subscript) and isinstance(innermost.ctx, ast.Load))
        )
        if isinstance(node, (ast.expr, ast.AugAssign)) and not is_limit:
            innermost = node
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            scope = node
        parts = (part for part in _spanned(node) if part is not called)
        node = next((part for part in parts if _holds(source, part, start, end)), None)
    if innermost is None:
        raise ValueError(f"{source.text[start:end]!r}: expected a text within an expression")
    return innermost, scope


def _spanned(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node; those of parts without a line, such as a comprehension's, instead of them."""
    parts = []
    for child in ast.iter_child_nodes(node):
        parts += [child] if hasattr(child, "lineno") else _spanned(child)
    return parts


def _holds(source: Source, node: ast.AST, start: int, end: int) -> bool:
    assert isinstance(node, (ast.expr, ast.stmt, ast.excepthandler, ast.arg, ast.keyword, ast.pattern, ast.alias))
    first, last = source.span(node)
    return first <= start and end <= last


def _is_pure(node: ast.AST) -> bool:
    """Return whether an expression can be computed twice: it calls no function that may change something."""
    return not any(
        isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom))
        or (isinstance(part, ast.Call) and not (isinstance(part.func, ast.Name) and part.func.id in PURE))
        for part in ast.walk(node)
    )


def instrumented(text: str, mutants: Sequence[Replacement]) -> str:
    """Return a file in which each mutant's expression notes its test."""
    source = Source(text)
    end = len(text)
    for first, last, call in sorted((with_probe(source, mutant) for mutant in mutants), reverse=True):
        if last > end:
            raise ValueError(f"{text[first:last]!r}: expected one mutant in an expression")
        text, end = text[:first] + call + text[last:], first
    return text


def run_and_note(tree: Path, tests: Sequence[str], workers: int) -> NotedTests:
    """Run quick tests in an instrumented tree, and read what they noted."""
    notes = tree.with_name(f"{tree.name}-notes")
    shutil.rmtree(notes, ignore_errors=True)
    notes.mkdir()
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider", "--tb=no", "-rfE"]
    environment = {
        **os.environ,
        "NOTED_MUTANTS": str(notes),
        "PYTHONPATH": os.pathsep.join([str(PROBE), str(tree)]),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("PYTEST_CURRENT_TEST", None)
    done = subprocess.run(
        [*command, "--durations=0", *tests], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    by_mutant: dict[str, set[str]] = defaultdict(set)
    for path in notes.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, test = line.partition("\t")
            by_mutant[name].add(test.partition("[")[0])
    seconds: dict[str, float] = defaultdict(float)
    for duration in DURATION.finditer(done.stdout):
        seconds[duration[2].partition("[")[0]] += float(duration[1])
    failing = sorted(set(FAILED.findall(done.stdout)))
    return NotedTests({name: sorted(tests) for name, tests in sorted(by_mutant.items())}, failing, dict(seconds))
