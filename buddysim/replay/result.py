"""The result of a run: one flat dictionary of counters per scheme (docs/reference/replay-counters.md defines each)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from buddysim.base.result import SchemeResult, file_name, peak_rss_bytes, software
from buddysim.replay.counters import counters_of, everything_counted, utilization_of
from buddysim.replay.schemes import allocation_zeros
from buddysim.trace.model import DERIVED_ACCESSES
from buddysim.trace.partial import partial_contents

if TYPE_CHECKING:
    from buddysim.replay.driver import ReplayRun


def _no_sensitivity() -> dict[str, Any]:
    return {
        "time_ps": [],
        "compression_ratio": [],
        "half_compute_gaps_time_ps": None,
        "double_compute_gaps_time_ps": None,
    }


@dataclass(frozen=True, repr=False)
class ReplayResult(SchemeResult):
    """The result of one replay under one scheme.

    Attributes
    ----------
    per_kernel : one dict per kernel
    per_allocation : one dict per allocation
    utilization : utilization of each resource over the run, 0 to 1
    speed : of the simulator, which no file of results has: seconds (wall-clock, without opening and profiling the
        trace), memory_instructions_per_s, line_accesses_per_s; peak_rss_bytes of its process up to the end of the run
    sensitivity : times and ratios of perturbed runs, and of runs with compute gaps halved and doubled (sensitivity.py)
    synthetic : `min_ratio` and `max_ratio` of `compression.ratio` over `seeds` seeds of synthetic sizes; else None
    slowdown : time / time of the baseline, and its sensitivity range; None without a baseline, or without a range
    """

    _KIND = "replay"

    per_kernel: list[dict[str, Any]]
    per_allocation: list[dict[str, Any]]
    utilization: dict[str, float]
    speed: dict[str, float] = field(default_factory=dict)
    sensitivity: dict[str, Any] = field(default_factory=_no_sensitivity)
    synthetic: dict[str, float | int | None] = field(
        default_factory=lambda: dict.fromkeys(("min_ratio", "max_ratio", "seeds"))
    )
    slowdown: dict[str, float | None] = field(default_factory=lambda: dict.fromkeys(("ratio", "min", "max")))

    def __repr__(self) -> str:
        """One line: the whole result is `to_dict`."""
        ratio, low, high = self.counters["compression.ratio"], self.synthetic["min_ratio"], self.synthetic["max_ratio"]
        memory = f"{ratio:.2f}x" if low is None else f"{low:.2f}x to {high:.2f}x by the seed of synthetic sizes"
        return (
            f"<ReplayResult {self.scheme}: {self.provenance['trace']} on {self.provenance['machine']}, "
            f"{self.counters['cycles']:,} cycles, {memory}>"
        )

    def _more(self) -> dict[str, Any]:
        return {
            **{f"utilization.{name}": fraction for name, fraction in self.utilization.items()},
            **{f"sensitivity.{name}": value for name, value in self.sensitivity.items()},
            **{f"compression.synthetic_{name}": value for name, value in self.synthetic.items()},
            **{f"slowdown.{name}": ratio for name, ratio in self.slowdown.items()},
            "per_kernel": self.per_kernel,
            "per_allocation": self.per_allocation,
        }


def build_result(run: ReplayRun, seconds: float) -> ReplayResult:
    """Return the result of a run that has ended.

    Parameters
    ----------
    run : the run
    seconds : wall-clock time of the replay
    """
    counted = everything_counted(run)
    return ReplayResult(
        scheme=run.scheme_name,
        counters=counters_of(run, counted),
        per_kernel=run.per_kernel,
        per_allocation=_per_allocation(run, counted["allocations"]),
        utilization=utilization_of(counted),
        provenance=_provenance(run),
        speed={
            "seconds": seconds,
            "memory_instructions_per_s": counted["memory_instructions"] / seconds if seconds else 0.0,
            "line_accesses_per_s": counted["line_accesses"] / seconds if seconds else 0.0,
            "peak_rss_bytes": peak_rss_bytes(),
        },
    )


def _per_allocation(run: ReplayRun, regions: list[tuple[int, int, int]]) -> list[dict[str, Any]]:
    rows = []
    for allocation_range in run.address_space.ranges:
        fills, writebacks, overflow_accesses = regions[allocation_range.region]
        target = run.targets.of(allocation_range.allocation.index).name if run.targets else "1x"
        rows.append(
            {
                "index": allocation_range.allocation.index,
                "name": allocation_range.allocation.name,
                "bytes": allocation_range.allocation.bytes,
                "space": allocation_range.allocation.space,
                "target": target,
                "fills": fills,
                "writebacks": writebacks,
                **allocation_zeros(),
                **run.scheme.allocation_counters(fills, writebacks, overflow_accesses),
            }
        )
    return sorted(rows, key=lambda row: row["index"])


def _provenance(run: ReplayRun) -> dict[str, Any]:
    assumptions = {f"trace.{key}": text for key, text in run.trace.provenance.assumptions.items()}
    if run.scheme.uses_sizes:
        assumptions |= {f"sizes.{key}": text for key, text in run.sizes.assumptions.items()}
    if run.targets and run.targets.source["kind"] == "profile":
        assumptions["targets"] = _profiled(run, run.targets.source)
    assumptions |= run.scheme.assumptions
    reserved = "when they arrive at the L1 and the L2" if run.exact_order else "when they issue"
    assumptions["model"] = (
        "no TLB and no page walks; copies take the time of their link and of the GPU's memory, not the host's; "
        f"requests reserve resources {reserved} (docs/explanation/replay-model.md)"
    )
    return {
        **software(),
        "scheme": run.scheme_name,
        "machine": run.machine.name,
        "machine_checksum": run.machine.checksum,
        "trace": file_name(run.trace.path),
        "trace_checksum": run.trace.fingerprint,
        "partial": run.trace.interrupted,
        "partial_contents": partial_contents(run.trace),
        "compressor": run.options.compressor,
        "seed": run.options.seed,
        "size_distribution": run.options.size_distribution,
        "threshold": run.options.threshold,
        "targets": run.targets.to_dict() if run.targets else {},
        "targets_source": run.targets.source if run.targets else {"kind": "none"},
        "kernels": [kernel.index for kernel in run.kernels],
        "compute_gap_scale": str(run.compute_gap_scale),
        "exact_order": run.exact_order,
        "sensitivity": {"requested": "none", "kinds": [], "runs": []},
        "baseline": None,
        "equal_capacity_bytes": None,
        "assumptions": assumptions,
    }


def _profiled(run: ReplayRun, source: dict[str, Any]) -> str:
    """Return the source of the targets, and what it knows that a real profile could not."""
    points = source["snapshot_points"]
    until = source["options"]["profile_until_launch"]
    taken = f"{len(points)} snapshot{'s' if len(points) != 1 else ''}" if points else "synthetic sizes"
    if points and until is not None:
        taken += f" up to launch {until}"
    if source["trace_checksum"] == run.trace.fingerprint:
        later = sum(point > run.kernels[0].launch_index for point in points) if run.kernels else 0
        return f"profiled on the replayed trace itself: {taken}" + (
            f", {later} of them after the run's start" if later else ""
        )
    text = f"profiled on {source['trace']}: {taken}"
    for what, keys in (("not there, kept whole", source["unmatched"]), ("fewer of the name there", source["beyond"])):
        if keys:
            text += f"; {what}: {', '.join(keys[:8])}" + (f" and {len(keys) - 8} more" if len(keys) > 8 else "")
    return text


def has_derived_accesses(result: Mapping[str, Any]) -> bool:
    """Whether the trace of a result is of a program without warps, so that its times mean nothing."""
    return bool(result["provenance"]["assumptions"].get("trace.accesses", "").startswith(DERIVED_ACCESSES))
