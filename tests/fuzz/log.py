"""The log of fuzzing by type, which several runs may add to, as a table in Markdown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Counts:
    """What became of the files of a type.

    Attributes
    ----------
    commands : whole commands that ran
    broken : rounds with a traceback, an exit code other than 0 and 2, a hang or a blow-up
    slowest_s : processor time of the slowest file
    reasons : refusals, without what differs between two files
    """

    accepted: int = 0
    refused: int = 0
    commands: int = 0
    broken: int = 0
    slowest_s: float = 0.0
    reasons: set[str] = field(default_factory=set)

    @property
    def files(self) -> int:
        return self.accepted + self.refused

    def row(self, name: str) -> str:
        """Return the row of the table."""
        accepted = f"{100 * self.accepted / self.files:.0f}" if self.files else ""
        cells = (name, self.files, accepted, len(self.reasons), self.commands, f"{self.slowest_s:.1f}", self.broken)
        return f"| {' | '.join(map(str, cells))} |"


HEAD = (
    "| type | files | accepted, % | kinds of refusals | commands | slowest, s | broken |\n|---|--:|--:|--:|--:|--:|--:|"
)


def read_log(path: Path) -> dict[str, Counts]:
    """Return the counts of a log by type; none where it does not exist."""
    if not path.exists():
        return {}
    content = json.loads(path.read_text())
    return {name: Counts(**{**counts, "reasons": set(counts["reasons"])}) for name, counts in content.items()}


def write_log(path: Path, log: dict[str, Counts]) -> None:
    """Write a log that `read_log` reads."""
    content = {name: {**asdict(counts), "reasons": sorted(counts.reasons)} for name, counts in log.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))


def table(log: dict[str, Counts]) -> str:
    """Return the log as a table."""
    total = Counts(
        sum(counts.accepted for counts in log.values()),
        sum(counts.refused for counts in log.values()),
        sum(counts.commands for counts in log.values()),
        sum(counts.broken for counts in log.values()),
        max((counts.slowest_s for counts in log.values()), default=0.0),
        set().union(*(counts.reasons for counts in log.values())),
    )
    return "\n".join([HEAD, *(counts.row(name) for name, counts in log.items()), total.row("all")])
