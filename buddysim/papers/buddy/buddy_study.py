"""The study's workloads, and what a store has of them: findings of analyses, and replays.

Traces lie in a folder as ``workloads make -o FOLDER`` writes them: NAME-SCALE-INPUT.bin. Everything is counted on the
input `replay`; targets come from the input `profile`. Nothing is simulated here: what the store lacks is noted, and
`buddysim.papers.buddy.run_missing` makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.papers.buddy.digitized_figures import workloads
from buddysim.sweep.cached_results import Result, SavedResults
from buddysim.sweep.point import SweepPoint
from buddysim.workloads.workload_registry import REGISTRY, SCALES

FOLDER = Path("out") / "workloads"
SCALE = "medium"
#: Analyses whose targets come from a profile.
_OF_TARGETS = ("accesses", "metadata", "overflow", "targets", "threshold")


class NoStoredResults(BuddysimError):
    """A figure of which the store has nothing."""


@dataclass
class BuddyStudy:
    """What the store has of the workloads at a scale.

    Attributes
    ----------
    results : from the store; of trainings also simulated
    folder : of the traces
    scale : of `workloads make`
    only : names of workloads; empty: all sixteen
    missing : points that were asked for and have no result, by name
    unmade : traces that were asked for and aren't there: name and input
    """

    results: SavedResults
    folder: Path = FOLDER
    scale: str = SCALE
    only: Sequence[str] = ()
    missing: dict[str, SweepPoint] = field(default_factory=dict)
    unmade: dict[tuple[str, str], Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise BuddysimError(
                f"scale {shortened(self.scale)}: expected one of {', '.join(SCALES)}{hint(self.scale, SCALES)}"
            )
        for name in self.only:
            if name not in paper_names():
                known = ", ".join(paper_names())
                raise BuddysimError(f"workload {shortened(name)}: expected one of {known}{hint(name, paper_names())}")

    def names(self, group: str | None = None) -> list[str]:
        """The workloads of a group, or all, in the order of the paper's figures."""
        return [
            name
            for name, paper in paper_names().items()
            if (group is None or workloads()[paper] == group) and (not self.only or name in self.only)
        ]

    @staticmethod
    def names_in_order() -> list[str]:
        """All sixteen, in the order of the paper's figures."""
        return list(paper_names())

    def path(self, name: str, which: str) -> Path:
        """Where a workload's trace is, or would be."""
        return self.folder.resolve() / f"{name}-{self.scale}-{which}.bin"

    def analysis_rows(
        self, name: str, analysis: str, same_input: bool = False, **settings: Any
    ) -> list[dict[str, Any]] | None:
        """The rows of an analysis of a workload; None where there is none.

        Parameters
        ----------
        same_input : targets come from the trace that is analysed
        settings : options of the analysis, as `buddysim.sweep` takes them
        """
        inputs = () if same_input or analysis not in _OF_TARGETS else ("profile",)
        result = self._result("analysis", name, inputs, {"analysis": analysis, **settings})
        if result is None:
            return None
        return [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]

    def replay(self, name: str, scheme: str, same_input: bool = False, **settings: Any) -> Result | None:
        """The result of a replay; None where there is none. Parameters as `analysis_rows` has them."""
        inputs = ("profile",) if scheme == "buddy" and not same_input else ()
        return self._result("replay", name, inputs, {"scheme": scheme, **settings})

    def _result(self, engine: str, name: str, profiled: Sequence[str], settings: dict[str, Any]) -> Result | None:
        files = {which: self.path(name, which) for which in ("replay", *profiled)}
        unmade = {(name, which): path for which, path in files.items() if not path.is_file()}
        if unmade:
            self.unmade |= unmade
            return None
        if profiled:
            settings["profile_from"] = str(files["profile"])
        point = self.results.point(engine, {"trace": str(files["replay"]), **settings})
        found = self.results.stored(point)
        if found is None:
            self.missing[point.key] = point
        return found

    def missing_text(self) -> str:
        """What was asked for and isn't there, in a line; empty where all is."""
        parts = []
        if self.unmade:
            names = dict.fromkeys(path.name for path in self.unmade.values())
            parts.append(f"{len(names)} traces of {', '.join(dict.fromkeys(name for name, _ in self.unmade))}")
        if self.missing:
            parts.append(f"{len(self.missing)} results")
        return " and ".join(parts)

    def require_rows(self, figure: str, rows: Sequence[object]) -> None:
        """A `NoStoredResults` for a figure without rows."""
        if not rows:
            raise NoStoredResults(
                f"{figure}: no result in {_store_text(self.results)}: {self.missing_text() or 'results'} missing at "
                f"scale {self.scale}, traces in {self.folder}: plot {figure} --scale {self.scale} --run makes them"
            )


def _store_text(results: SavedResults) -> str:
    return "memory" if results.store is None else str(results.store.folder)


def paper_names() -> dict[str, str]:
    """The paper's name of each workload of the study, by ours, in the order of the figures."""
    ours = {module.PAPER: name for name, module in REGISTRY.items() if hasattr(module, "PAPER")}
    return {ours[paper]: paper for paper in workloads()}
