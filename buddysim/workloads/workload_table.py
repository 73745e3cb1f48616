"""A page of workloads in figures: their arrays, their ratios, and the paper's values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import csv_tables
from buddysim.trace import open_trace
from buddysim.workloads.workload_comparison import (
    MAX_POINTS,
    POINTS,
    WorkloadComparison,
    class_counts,
    compare,
    origin,
    ratio,
    summary,
)
from buddysim.workloads.workload_registry import REGISTRY, is_network, solver_of
from buddysim.workloads.written_sectors import touched_bytes

_FOLDER = Path(__file__).parent / "reference"
_HEAD = """# The workloads in figures

Made by `python -m buddysim workloads table FILE ...` from their traces. Ratios are those of BPC with a size class per
entry, at ten points of the run. The paper's are read off its Figure 3 (a dash: above its axis, over 7x); its footprints
are Table 1's.
"""


def table(paths: Iterable[str | os.PathLike[str]]) -> str:
    """Return the document, from traces of any scale; traces of scale ``reference`` are compared with their programs.

    Raises
    ------
    BuddysimError
            a file that is no trace of a workload
    """
    ordinary: list[tuple[int, str, str]] = []
    compared: list[tuple[int, str, str]] = []
    for path in paths:
        with open_trace(path) as trace:
            name, scale, which, _ = origin(trace, path)
        entry = (REGISTRY.names().index(name), which, os.fspath(path))
        (compared if scale == "reference" else ordinary).append(entry)
    if not ordinary and not compared:
        raise BuddysimError("workloads table: no trace: expected at least one")
    parts = [_HEAD, *_figures([path for *_, path in sorted(ordinary)])]
    networks = [path for name, _, path in sorted(ordinary) if is_network(REGISTRY.find(REGISTRY.names()[name]))]
    if networks:
        parts += _trainings(networks)
    if compared:
        parts += _comparisons([compare(path) for *_, path in sorted(compared)])
    return "\n".join(parts)


def _figures(paths: Sequence[str | os.PathLike[str]]) -> Iterator[str]:
    yield "## Size and contents\n"
    yield "| workload | input | footprint (paper) | traced (warp instructions) | run | ratio by tenths | the paper's |"
    yield "|---|---|---|---|---|---|---|"
    for path in paths:
        with open_trace(path) as trace:
            name, scale, which, problem = origin(trace, path)
            operations = sum(kernel.memory_instructions for kernel in trace.kernels)
            ratios = " ".join(f"{ratio(counts):.2f}" for counts in class_counts(trace))
            paper, size = _paper(REGISTRY.find(name))
            megabytes = sum(one.bytes for one in trace.allocations) / 1e6
            traced = (
                f"{operations / 1e6:.2f} M in {len(trace.kernels)} launches, {touched_bytes(trace) >> 20} MiB touched"
            )
            run = _run(name, scale, which, problem)
            footprint = f"{megabytes:.0f} MB ({size} GB)"
            yield f"| {name} {scale} | {which} | {footprint} | {traced} | {run} | {ratios} | {paper} |"
    parts = [(name, REGISTRY.find(name).PART) for name in REGISTRY.names() if hasattr(REGISTRY.find(name), "PART")]
    yield "\nA whole step is traced, but of these:\n"
    yield from (f"- {name}: {part} (warp instructions)." for name, part in parts)
    yield "\n## What they compute, and why they differ from the paper's\n"
    yield "| workload | what it computes | the same by an unmodified program | why |"
    yield "|---|---|---|---|"
    for name in REGISTRY.names():
        workload = REGISTRY.find(name)
        paper = getattr(workload, "PAPER", "not in the paper")
        yield f"| {name} ({paper}) | {workload.SUMMARY} | {_reference(workload)} | {getattr(workload, 'WHY', '-')} |"


def _comparisons(comparisons: Sequence[WorkloadComparison]) -> Iterator[str]:
    yield "\n## Compared with unmodified programs\n"
    yield f"Allocations that both have. A row is within where no fraction differs by over {MAX_POINTS:g} points.\n"
    yield "| workload | program | ratio first | middle | last (reference / workload) | rows within | largest |"
    yield "|---|---|---|---|---|---|---|"
    for one in comparisons:
        ratios = " | ".join("{:.3f} / {:.3f}".format(*one.ratios(when)) for when in POINTS)
        alike = sum(row.alike for row in one.rows)
        worst = sorted((row for row in one.rows if not row.alike), key=lambda row: -row.points)[:3]
        named = ", ".join(f"{row.name} {row.when} {row.points:.1f}" for row in worst) or "none"
        yield f"| {one.workload} | {one.program} | {ratios} | {alike} of {len(one.rows)} | {named} |"


def _run(name: str, scale: str, which: str, problem: Mapping[str, Any]) -> str:
    """Return the extent of a run: a network's from its trace, an OpenCL program's from its solver."""
    if is_network(REGISTRY.find(name)):
        sizes = f"{problem['batch']} samples of {problem['size']}, width {problem['width']:g}"
        return f"{problem['steps']} steps of {sizes}"
    solver = solver_of(name, scale, which)
    return f"{solver.steps} steps, {solver.launches} launches"


def _trainings(paths: Sequence[str | os.PathLike[str]]) -> Iterator[str]:
    """Yield the table of the networks' losses at each snapshot."""
    yield "\n## Losses\n"
    yield "Of the batch of each snapshot's step; the last column is the check that the trace was written on.\n"
    yield "| workload | input | step: loss | verified |"
    yield "|---|---|---|---|"
    for path in paths:
        with open_trace(path) as trace:
            name, scale, which, _ = origin(trace, path)
            labels = [one.label for one in trace.snapshots if not one.for_replay]
            matches = [re.search(r"iteration (\d+), loss ([\d.]+)", label) for label in labels]
            losses = ", ".join(f"{match[1]}: {float(match[2]):.2f}" for match in matches if match is not None)
            verified = trace.provenance.assumptions.get("verification", "-").removeprefix("none: ")
            yield f"| {name} {scale} | {which} | {losses} | {verified.partition(' = ')[0]} |"


def _reference(workload: ModuleType) -> str:
    keys = getattr(workload, "REFERENCE", {})
    texts = []
    for key in keys.values():
        rows = [row for row in summary() if row["key"] == key]
        texts.append(f"{rows[0]['program']}, {rows[0]['input']}: {rows[0]['ratio']} to {rows[-1]['ratio']}")
    return "; ".join(texts) or "-"


@cache
def _papers() -> dict[str, dict[str, str]]:
    path = _FOLDER / "paper_fig3.csv"
    return {row["name"]: row for row in csv_tables(path.read_text(encoding="utf-8"), path.name)}


def _paper(workload: ModuleType) -> tuple[str, str]:
    """Return the ten ratios of Figure 3, and the footprint of Table 1 in GB; dashes for missing values."""
    row = _papers().get(getattr(workload, "PAPER", ""), {})
    return " ".join(row.get(f"ratio_{point}") or "-" for point in range(10)), row.get("footprint_gb", "-")
