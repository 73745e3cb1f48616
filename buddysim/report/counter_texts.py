"""What every counter of both engines means, from docs/counters.md, which comes with the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources

from buddysim.replay.schemes import REGISTRY

DOCUMENT = "docs/counters.md"
_TRAINING = "# Results of training iterations"
_KEY = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class CounterText:
    """One counter.

    Attributes
    ----------
    name : its key
    engine : ``replay`` or ``training``
    unit : empty where it has none
    text : its definition
    source : where that stands, and what computes it
    laws : equations that it is part of
    """

    name: str
    engine: str
    unit: str
    text: str
    source: str
    laws: tuple[str, ...] = field(default=())


@cache
def document() -> str:
    """The text of docs/counters.md."""
    return (resources.files("buddysim.report") / "counters.md").read_text(encoding="utf-8")


def counter_texts() -> list[CounterText]:
    """Every counter: those of the document, then those of schemes."""
    replays, _, trainings = document().partition(_TRAINING)
    found = [*_of_part(replays, "replay"), *_of_part(trainings, "training")]
    for scheme_name, scheme in REGISTRY.items():
        for name, definition in scheme.COUNTERS.items():
            unit, _, text = definition.partition(": ")
            source = f"the replay scheme {scheme_name}, {scheme.__module__}"
            found.append(CounterText(name, "replay", unit, text, source))
    return found


def _of_part(text: str, engine: str) -> Iterator[CounterText]:
    laws = list(_laws(text))
    for counter in _rows(text, engine):
        own = tuple(dict.fromkeys(law for law in laws if f"`{counter.name}`" in law))
        yield replace(counter, laws=own)


def _rows(text: str, engine: str) -> Iterator[CounterText]:
    section = ""
    for line in text.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        if not line.startswith("| `"):
            continue
        first, *others = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        unit, definition = (others[0], others[1]) if len(others) == 2 else ("", others[0])
        for name in _KEY.findall(first):
            yield CounterText(name, engine, unit, definition, f"{DOCUMENT}, {section}; {_computed_in(name, engine)}")


def _laws(text: str) -> Iterator[str]:
    """Equations between counters, of definitions in tables and of sentences."""
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("| `"):
            first, *others = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            name, definition = _KEY.findall(first)[0], others[-1]
            if re.fullmatch(r"`[^`]+`(?: [-+/] (?:`[^`]+`|\([^)]*\)))+.*", definition) and "`" in definition:
                yield f"`{name}` = {definition.partition(';')[0]}"
        elif line and not line.startswith(("#", "|")):
            paragraph.append(line)
        elif paragraph:
            for sentence in re.split(r"(?<=[.:]) |, and (?=`)", " ".join(paragraph)):
                if re.search(r"`[^`]+` = .*`", sentence):
                    yield sentence.strip().rstrip(".,").removeprefix("Conservation: ")
            paragraph = []


def _computed_in(name: str, engine: str) -> str:
    if engine == "training":
        return "buddysim/training/result.py"
    if name.startswith("per_kernel."):
        return "buddysim/replay/driver.py"
    if name.startswith("sensitivity."):
        return "buddysim/replay/sensitivity.py"
    if name.startswith("slowdown."):
        return "buddysim/replay/comparison.py"
    if name.startswith(("per_allocation.", "provenance.", "speed.", "compression.drawn")):
        return "buddysim/replay/result.py"
    return "buddysim/replay/counters.py"
