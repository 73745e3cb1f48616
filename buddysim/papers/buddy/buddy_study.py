"""The study's workloads, and their results in a store: analyses and replays.

Traces lie in a folder as ``workloads make -o FOLDER`` writes them: NAME-SCALE-INPUT.bin. Everything is counted on the
input `replay`; targets come from the input `profile`. Nothing is simulated here: missing results are noted, and
`buddysim.papers.buddy.run_missing` simulates them.
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
    """A figure without any result in the store."""


@dataclass
class BuddyStudy:
    """Results of the workloads at a scale.

    Attributes
    ----------
    results : from the store; of trainings also simulated
    folder : of the traces
    scale : of `workloads make`
    only : names of workloads; empty: all sixteen
    missing : requested points without a result, by name
    missing_traces : requested traces without a file, by name and input
    """

    results: SavedResults
    folder: Path = FOLDER
    scale: str = SCALE
    only: Sequence[str] = ()
    missing: dict[str, SweepPoint] = field(default_factory=dict)
    missing_traces: dict[tuple[str, str], Path] = field(default_factory=dict)

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
        """Return the workloads of a group, or all, in the order of the paper's figures."""
        return [
            name
            for name, paper in paper_names().items()
            if (group is None or workloads()[paper] == group) and (not self.only or name in self.only)
        ]

    @staticmethod
    def names_in_order() -> list[str]:
        """Return all sixteen, in the order of the paper's figures."""
        return list(paper_names())

    def path(self, name: str, which: str) -> Path:
        """Return the path of a workload's trace, which need not exist."""
        return self.folder.resolve() / f"{name}-{self.scale}-{which}.bin"

    def analysis_rows(
        self, name: str, analysis: str, same_input: bool = False, **settings: Any
    ) -> list[dict[str, Any]] | None:
        """Return the rows of an analysis of a workload; None if it is not stored.

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
        """Return the result of a replay; None if it is not stored. Parameters: see `analysis_rows`."""
        inputs = ("profile",) if scheme == "buddy" and not same_input else ()
        return self._result("replay", name, inputs, {"scheme": scheme, **settings})

    def _result(self, engine: str, name: str, profiled: Sequence[str], settings: dict[str, Any]) -> Result | None:
        files = {which: self.path(name, which) for which in ("replay", *profiled)}
        missing_traces = {(name, which): path for which, path in files.items() if not path.is_file()}
        if missing_traces:
            self.missing_traces |= missing_traces
            return None
        if profiled:
            settings["profile_from"] = str(files["profile"])
        point = self.results.point(engine, {"trace": str(files["replay"]), **settings})
        result = self.results.stored(point)
        if result is None:
            self.missing[point.key] = point
        return result

    def missing_text(self) -> str:
        """Return the number of missing traces and results, in a line; empty if none is missing."""
        parts = []
        if self.missing_traces:
            names = dict.fromkeys(path.name for path in self.missing_traces.values())
            parts.append(f"{len(names)} traces of {', '.join(dict.fromkeys(name for name, _ in self.missing_traces))}")
        if self.missing:
            parts.append(f"{len(self.missing)} results")
        return " and ".join(parts)

    def require_rows(self, figure: str, rows: Sequence[object]) -> None:
        """Raise `NoStoredResults` for a figure without rows."""
        if not rows:
            raise NoStoredResults(
                f"{figure}: no result in {_store_text(self.results)}: {self.missing_text() or 'results'} missing at "
                f"scale {self.scale}, traces in {self.folder}: plot {figure} --scale {self.scale} --run makes them"
            )


def _store_text(results: SavedResults) -> str:
    return "memory" if results.store is None else str(results.store.folder)


def paper_names() -> dict[str, str]:
    """Return the paper's name of each workload of the study by buddysim's name, in the order of the figures."""
    workload_of = {module.PAPER: name for name, module in REGISTRY.items() if hasattr(module, "PAPER")}
    return {workload_of[paper]: paper for paper in workloads()}
