"""Notes which test gives a mutated expression another value. Python imports it at the start of every process.

`tools/noted_tests.py` writes calls of `note_mutant` into a copy of the sources and sets `NOTED_MUTANTS`.
"""

import builtins
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_noted: set[tuple[str, str]] = set()


def _differs(value: object, mutated: Callable[[], object]) -> bool:
    try:
        other = mutated()
        return type(other) is not type(value) or not bool(other == value)
    except Exception:  # as the mutant would, in place of a value
        return True


def note_mutant(name: str, value: Any, mutated: Callable[[], object] | None = None) -> Any:
    """Return a value; note the test that runs if the mutant would have another, or none that is safe to compute."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]  # tests' own processes inherit it
    if (name, test) not in _noted and (mutated is None or _differs(value, mutated)):
        _noted.add((name, test))
        with (Path(os.environ["NOTED_MUTANTS"]) / str(os.getpid())).open("a", encoding="utf-8") as file:
            file.write(f"{name}\t{test}\n")
    return value


builtins.note_mutant = note_mutant  # type: ignore[attr-defined]
