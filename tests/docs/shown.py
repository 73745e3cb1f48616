"""Documented examples: commands that set something, and the change of their numbers."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from buddysim.cli import main
from buddysim.sweep.result_rows import read_rows
from buddysim.sweep.store import Store
from tests.docs.generated import documents_of

ROOT = Path(__file__).parents[2]
#: A number that an example is about changes by more than this.
MIN_CHANGE = 0.05
COMMANDS = {"run", "sweep", "profile", "analyse", "train"}
SETTINGS = {
    "--set", "--baseline-set", "--threshold", "--profile-until-launch", "--equal-capacity",
    "--machine", "--targets",
}  # fmt: skip

Row = Mapping[str, Any]


def documents() -> list[Path]:
    """Pages whose commands a reader types."""
    folders = ("tutorials", "how-to", "reference", "explanation")
    pages = itertools.chain.from_iterable(documents_of(ROOT / "docs" / folder) for folder in folders)
    return [*(ROOT / name for name in ("README.md", "traces/README.md", "examples/README.md")), *sorted(pages)]


def commands(text: str, is_shown: Callable[[str], bool] = lambda inline: True) -> Iterator[list[str]]:
    """Arguments of every ``python -m buddysim`` in a document's code, up to a pipe, a redirection or a comment.

    Parameters
    ----------
    is_shown : whether a command counts that stands in a sentence or a cell, by its text
    """
    text = text.replace("\\\n", " ")
    for block, inline in re.findall(r"^python -m buddysim (.+)$|`python -m buddysim ([^`]+)`", text, re.MULTILINE):
        if inline and not is_shown(inline):
            continue
        words = shlex.shlex(block or inline, posix=True, punctuation_chars="|<>&;")
        words.whitespace_split = True
        yield list(itertools.takewhile(lambda word: not set(word) <= set("|<>&;"), words))


def setting_commands(text: str) -> list[list[str]]:
    """Return commands that set or vary something; a dry run counts as the run; patterns (FILE, ..) are left out."""
    result = []
    for words in commands(text):
        if not words or words[0] not in COMMANDS or any(re.fullmatch(r"\.+|[A-Z]{3,}(\.\w+)?", word) for word in words):
            continue
        words = [word for word in words if word != "--dry-run"]
        if (words[0] == "sweep" or SETTINGS & {*words}) and words not in result:
            result.append(words)
    return result


def less(words: Sequence[str], removed: Sequence[str]) -> list[str]:
    """A command without some of its words, which follow one another."""
    for at in range(len(words)):
        if [*words[at : at + len(removed)]] == [*removed]:
            return [*words[:at], *words[at + len(removed) :]]
    raise AssertionError(f"{shlex.join(words)}: has no {shlex.join(removed)}")


def printed(words: Sequence[str], folder: Path, sensitivity: str = "none") -> dict[str, Any]:
    """The result that a command writes with ``--json``; of a command with a plug-in, in another process."""
    output = folder / "result.json"
    given = [*words, "--json", str(output)]
    if words[0] == "run":
        given = [*(word for word in given if word != "--no-sensitivity"), "--sensitivity", sensitivity]
    if "--plugin" in words:
        command = [sys.executable, "-m", "buddysim", *given]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    else:
        assert main(given) == 0, shlex.join(given)
    result: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return result


def swept(words: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """The rows of the results of a sweep, in a store of its own."""
    dropped = {"--workers", "--scheduler", "--store"}
    given = [word for at, word in enumerate(words) if word not in dropped and (at == 0 or words[at - 1] not in dropped)]
    assert main([*given, "--workers", "1", "--store", str(folder / "store")]) == 0, shlex.join(words)
    return read_rows(Store.at(folder / "store"))


def change(first: float, second: float) -> float:
    """By how much the larger exceeds the smaller, relative to the smaller."""
    low, high = sorted((abs(first), abs(second)))
    return high / low - 1 if low else float(high > 0)


def changes_along(rows: Iterable[Row], axis: str, axes: Sequence[str], quantity: str) -> list[float]:
    """By how much a quantity changes along an axis: one number for each set of values of the other axes."""
    groups = defaultdict(list)
    for row in rows:
        if row.get(quantity) is not None and row.get(axis) is not None:
            groups[tuple(str(row.get(other)) for other in axes if other != axis)].append(float(row[quantity]))
    return [change(min(values), max(values)) for values in groups.values() if len(values) > 1]
