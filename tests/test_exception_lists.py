"""No list of exceptions stands around code that reads a file: each names what its author thought of, and hides bugs.

Another library's parser is called in `base`, where any exception becomes one line (`tests/base/parsers`). This package
checks what it reads: by a schema, or with an exception of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What damaged contents raise in code that doesn't look at them first.
OF_CONTENTS = {
    "ArithmeticError", "AttributeError", "EOFError", "IndexError", "KeyError", "LookupError", "OverflowError",
    "RecursionError", "TypeError", "UnicodeDecodeError", "UnicodeError", "ValueError", "ZeroDivisionError", "error",
}  # fmt: skip
#: Files with two or more of them, and why they may stay.
REASONS = {
    "buddysim/capture/memory/__init__.py": "float() of one text of the command line, rounded",
    "buddysim/cli/plot.py": "float() and a unit of one text of the command line",
    "buddysim/machine/fields.py": "float() of one value",
    "buddysim/sweep/axis.py": "Fraction() of one value",
}


#: A handler of several exceptions, in Python and Cython.
_HANDLER = re.compile(r"(?:^[ \t]*except|\bsuppress)\s*\(([^()]*)\)", re.MULTILINE)


def lists_in(source: str) -> Iterator[int]:
    """Lines of handlers of two or more exceptions that contents raise."""
    for handler in _HANDLER.finditer(source):
        names = {name.strip().rpartition(".")[2] for name in handler[1].split(",")}
        if len(names & OF_CONTENTS) > 1:
            yield source.count("\n", 0, handler.start()) + 1


def test_no_list_of_exceptions_stands_around_what_reads_a_file() -> None:
    with_lists = {
        path.relative_to(ROOT).as_posix()
        for folder in ("buddysim", "tools")
        for path in sorted((ROOT / folder).rglob("*.py*"))
        if path.suffix in (".py", ".pyx", ".pxi") and [*lists_in(path.read_text(encoding="utf-8"))]
    }
    assert with_lists == REASONS.keys()


def test_a_list_is_seen() -> None:
    code = "try:\n    x()\nexcept ({}):\n    pass\n"
    assert [*lists_in(code.format("\n    KeyError,\n    ValueError,\n"))] == [3]
    assert [*lists_in(code.format("KeyError, struct.error"))] == [3]
    assert [*lists_in("with contextlib.suppress(ValueError, IndexError):\n    x()\n")] == [1]
    assert [*lists_in(code.format("OSError, ValueError"))] == []
