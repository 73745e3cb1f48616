"""Chooses mutants by a seed: comparisons, signs and bounds in Python files.

python -m tools.random_mutants --seed 58 --count 100 training capture > tools/mutants/random.toml

Folders of buddysim/ share the count by their lines. What changes no result is left out: annotations, docstrings,
messages, `__repr__`, decorators, and what stands under `if TYPE_CHECKING`. `tools/run_mutants.py` applies the list by
text, so that a mutant stays the same when its file moves.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

COMPARISONS: dict[type, tuple[str, str]] = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<")}
COMPARISONS |= {ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")}
SIGNS: dict[type, tuple[str, str]] = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
LINKS: dict[type, tuple[str, str]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
BOUNDS = {"min": "max", "max": "min"}

FOR_MESSAGES = {"__repr__", "__str__"}
#: Fields of the syntax tree without an effect on results.
SKIPPED = {"annotation", "returns", "decorator_list", "bases", "keywords", "msg", "pattern"}


class Change(NamedTuple):
    """A text between two offsets of a file, and its replacement."""

    start: int
    end: int
    new: str


class Source:
    """A file's text and syntax tree, with offsets in place of lines and columns."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line))

    def offset(self, line: int, byte: int) -> int:
        """Return the offset of a byte of a line."""
        return self.offsets[line - 1] + len(self.lines[line - 1].encode()[:byte].decode())

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Return the offsets at which an expression begins and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def between(self, left: ast.expr, right: ast.expr, texts: tuple[str, str]) -> Iterator[Change]:
        """Yield the replacement of the operator between two expressions; none where a comment stands there."""
        start, end = self.span(left)[1], self.span(right)[0]
        at = self.text.find(texts[0], start, end)
        if at >= 0 and "#" not in self.text[start:end]:
            yield Change(at, at + len(texts[0]), texts[1])

    def whole_lines(self, change: Change) -> tuple[str, str]:
        """Return the lines of a change, with as many before it as make them unique, and their replacement."""
        first = max(index for index, offset in enumerate(self.offsets) if offset <= change.start)
        end = next(offset for offset in self.offsets if offset >= change.end) - 1
        while self.text.count(self.text[self.offsets[first] : end]) > 1:
            first -= 1
        start = self.offsets[first]
        return self.text[start:end], self.text[start : change.start] + change.new + self.text[change.end : end]


def has_no_difference(node: ast.expr) -> bool:
    """Return whether an operand of a sum is a text or a list by its form."""
    if isinstance(node, ast.BinOp):
        return has_no_difference(node.left) or has_no_difference(node.right)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text or isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp))


def operators(source: Source, node: ast.AST) -> Iterator[Change]:
    """Yield the replacements of a node's own operators."""
    if isinstance(node, ast.Compare):
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if type(operator) in COMPARISONS:
                yield from source.between(left, right, COMPARISONS[type(operator)])
    elif isinstance(node, ast.BinOp) and type(node.op) in SIGNS and not has_no_difference(node):
        yield from source.between(node.left, node.right, SIGNS[type(node.op)])
    elif isinstance(node, ast.AugAssign) and type(node.op) in SIGNS and not has_no_difference(node.value):
        yield from source.between(node.target, node.value, SIGNS[type(node.op)])
    elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
        yield from source.between(node.values[0], node.values[1], LINKS[type(node.op)])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        start = source.span(node)[0]
        yield Change(start, start + 1, "")


def bounds(source: Source, node: ast.AST) -> Iterator[Change]:
    """Yield the replacements of `min` and `max`, and of whole numbers that are limits: one more."""
    limits: list[ast.expr | None] = []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {*BOUNDS, "range"}:
        limits = list(node.args)
        if node.func.id in BOUNDS:
            yield Change(*source.span(node.func), BOUNDS[node.func.id])
    elif isinstance(node, ast.Slice):
        limits = [node.lower, node.upper]
    elif isinstance(node, ast.Compare):
        limits = list(node.comparators)
    for limit in limits:
        if isinstance(limit, ast.Constant) and type(limit.value) is int:
            yield Change(*source.span(limit), str(limit.value + 1))


def changes(source: Source, node: ast.AST) -> Iterator[Change]:
    """Yield all changes within a node."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.arguments)) or getattr(node, "name", "") in FOR_MESSAGES:
        return
    yield from operators(source, node)
    yield from bounds(source, node)
    is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    skipped = {"body"} if is_for_types else set() if isinstance(node, ast.Call) else SKIPPED
    for name, field in ast.iter_fields(node):
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST) and name not in skipped:
                yield from changes(source, child)


def counts_of_folders(folders: Sequence[str], count: int) -> dict[str, int]:
    """Return how many mutants each folder has: by its lines, the largest remainders rounded up."""
    lines = {
        folder: sum(path.read_bytes().count(b"\n") for path in (ROOT / "buddysim" / folder).rglob("*.py"))
        for folder in folders
    }
    exact = {folder: count * lines[folder] / sum(lines.values()) for folder in folders}
    result = {folder: int(part) for folder, part in exact.items()}
    for folder in sorted(folders, key=lambda folder: result[folder] - exact[folder])[: count - sum(result.values())]:
        result[folder] += 1
    return result


def sampled(folder: str, count: int, seed: int) -> Iterator[tuple[str, Source, Change]]:
    """Yield a folder's mutants: file, source and change."""
    sources = {path: Source(path.read_text(encoding="utf-8")) for path in (ROOT / "buddysim" / folder).rglob("*.py")}
    known = [(path, change) for path, source in sorted(sources.items()) for change in changes(source, source.tree)]
    for path, change in sorted(random.Random(f"{seed}/{folder}").sample(known, count)):
        yield path.relative_to(ROOT).as_posix(), sources[path], change


def entry(file: str, source: Source, change: Change) -> str:
    """Return a mutant as an entry of a list of `tools/mutants/`."""
    line = source.text.count("\n", 0, change.start) + 1
    old, new = source.whole_lines(change)
    texts = {
        "name": f"{'-'.join(Path(file).with_suffix('').parts[1:])}-{line}",
        "mechanism": f"`{source.text[change.start : change.end]}` becomes `{change.new}`",
        "file": file,
        "old": old,
        "new": new,
    }
    # A text of JSON is one of TOML, too.
    return "\n".join(["[[mutant]]", *(f"{name} = {json.dumps(text)}" for name, text in texts.items())])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the list."""
    parser = argparse.ArgumentParser(description="chooses mutants by a seed: comparisons, signs and bounds")
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="folder of buddysim/")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True, help="mutants of all folders together")
    options = parser.parse_args(arguments)
    print(f"# {options.count} mutants by seed {options.seed}: python -m tools.random_mutants", end="")
    print(f" --seed {options.seed} --count {options.count} {' '.join(options.folders)}")
    for folder, count in counts_of_folders(options.folders, options.count).items():
        for file, source, change in sampled(folder, count, options.seed):
            print(f"\n{entry(file, source, change)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
