"""What a run says: one flat dictionary of counters per scheme (docs/counters.md defines each)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from buddysim.base.result import SchemeResult, file_name, peak_rss_bytes, software
from buddysim.compress import SECTOR_BYTES
from buddysim.replay.engine.kinds import Traffic
from buddysim.replay.parameters import COST_PER_PS
from buddysim.replay.schemes import counter_names

if TYPE_CHECKING:
    from buddysim.replay.driver import Run
    from buddysim.trace import Trace

SENSITIVITY = ("half_gaps_time_ps", "double_gaps_time_ps")


@dataclass(frozen=True, repr=False)
class ReplayResult(SchemeResult):
    """The result of one replay under one scheme.

    Attributes
    ----------
    per_kernel : one dict per kernel
    per_allocation : one dict per allocation
    utilization : share of its limit that each resource reached over the run, 0 to 1
    speed : of the replay
    sensitivity : simulated time with the trace's gaps halved and doubled (sensitivity.py); None where not asked for
    """

    per_kernel: list[dict[str, Any]]
    per_allocation: list[dict[str, Any]]
    utilization: dict[str, float]
    speed: dict[str, float] = field(default_factory=dict)
    sensitivity: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(SENSITIVITY))

    def __repr__(self) -> str:
        """One line: the whole result is `to_dict`."""
        return (
            f"<ReplayResult {self.scheme}: {self.provenance['trace']} on {self.provenance['machine']}, "
            f"{self.counters['cycles']:,} cycles, {self.counters['compression.ratio']:.2f}x>"
        )

    def _more(self) -> dict[str, Any]:
        return {
            **{f"utilization.{name}": share for name, share in self.utilization.items()},
            **{f"sensitivity.{name}": time_ps for name, time_ps in self.sensitivity.items()},
            "per_kernel": self.per_kernel,
            "per_allocation": self.per_allocation,
            **{f"speed.{name}": value for name, value in self.speed.items()},
        }


def build_result(run: Run, seconds: float) -> ReplayResult:
    """The result of a run that has ended.

    Parameters
    ----------
    run : the run
    seconds : wall-clock time of the replay
    """
    raw = run.engine.counters()
    numbers = run.numbers
    time_ps = max(1, raw["now_ps"])
    footprint = run.footprint
    buddy = raw["buddy_fills"] + raw["buddy_writebacks"]
    moves = raw["fills"] + raw["writebacks"]
    device, link_in, link_out = raw["device"], raw["link_read"], raw["link_write"]
    entries = sum(p.end_entry - p.first_entry for p in run.layout.placed)
    extrapolated = run.states.extrapolated_entries if run.states else 0
    counters: dict[str, Any] = {
        "time_ps": raw["now_ps"],
        "cycles": raw["now_ps"] // _number(numbers, "cycle_ps"),
        "warp_instructions": raw["warp_instructions"],
        "memory_instructions": raw["memory_instructions"],
        "line_accesses": raw["line_accesses"],
        "load_sectors": raw["load_sectors"],
        "store_sectors": raw["store_sectors"],
        "l1.sector_accesses": raw["l1_accesses"],
        "l1.sector_hits": raw["l1_hits"],
        "l1.sector_merged": raw["l1_merged"],
        "l1.line_accesses": raw["l1_lines"],
        "l1.line_hits": raw["l1_line_hits"],
        "l2.sector_accesses": raw["l2_reads"] + raw["l2_writes"],
        "l2.sector_hits": raw["l2_read_hits"] + raw["l2_write_hits"],
        "l2.sector_merged": raw["l2_read_merged"],
        "l2.read_sectors": raw["l2_reads"],
        "l2.read_sector_hits": raw["l2_read_hits"],
        "l2.write_sectors": raw["l2_writes"],
        "l2.write_sector_hits": raw["l2_write_hits"],
        "l2.line_accesses": raw["l2_lines"],
        "l2.line_hits": raw["l2_line_hits"],
        "l2.demand_sectors": raw["demanded"],
        "l2.fill_sectors": raw["fill_sectors"],
        "l2.fills": raw["fills"],
        "l2.writebacks": raw["writebacks"],
        "l2.writeback_sectors": raw["writeback_sectors"],
        "l2.dirtied_sectors": raw["dirtied_sectors"],
        "l2.overwritten_sectors": raw["overwritten_sectors"],
        "l2.dirty_sectors_left": run.engine.dirty_sectors(),
        "metadata.accesses": raw["metadata_accesses"],
        "metadata.hits": raw["metadata_hits"],
        "device.read_bytes": SECTOR_BYTES * sum(device[:3]),
        "device.write_bytes": SECTOR_BYTES * device[Traffic.WRITE_BACK],
        "device.metadata_bytes": SECTOR_BYTES * (device[Traffic.METADATA_READ] + device[Traffic.METADATA_WRITE]),
        "device.demand_bytes": SECTOR_BYTES * device[Traffic.DEMAND],
        "device.overfetch_bytes": SECTOR_BYTES * device[Traffic.OVERFETCH],
        "device.read_modify_write_bytes": SECTOR_BYTES * device[Traffic.READ_MODIFY_WRITE],
        "device.writeback_bytes": SECTOR_BYTES * device[Traffic.WRITE_BACK],
        "device.bus_bytes": SECTOR_BYTES * sum(raw["dram_bursts"]),
        "device.channel_bytes": [SECTOR_BYTES * bursts for bursts in raw["dram_bursts"]],
        "device.queued_write_bytes": SECTOR_BYTES * sum(raw["dram_queued_bursts"]),
        "device.row_hits": sum(raw["dram_row_hits"]),
        "device.row_misses": sum(raw["dram_row_misses"]),
        "link.read_bytes": raw["link_read_total_bytes"],
        "link.write_bytes": raw["link_write_total_bytes"],
        "link.demand_bytes": link_in[Traffic.DEMAND],
        "link.overfetch_bytes": link_in[Traffic.OVERFETCH],
        "link.read_modify_write_bytes": link_in[Traffic.READ_MODIFY_WRITE],
        "link.writeback_bytes": link_out[Traffic.WRITE_BACK],
        "buddy.accesses": buddy,
        "buddy.fills": raw["buddy_fills"],
        "buddy.writebacks": raw["buddy_writebacks"],
        "buddy.access_share": buddy / moves if moves else 0.0,
        "compression.ratio": footprint.ratio,
        "footprint.allocated_bytes": footprint.allocated,
        "footprint.device_bytes": footprint.device,
        "footprint.buddy_bytes": footprint.buddy,
        "footprint.metadata_bytes": footprint.metadata,
        "footprint.host_bytes": footprint.host,
        "sizes.switches": raw["grown"] + raw["shrunk"],
        "sizes.grown": raw["grown"],
        "sizes.shrunk": raw["shrunk"],
        "sizes.extrapolated_share": extrapolated / entries if entries else 0.0,
        **dict.fromkeys(counter_names(), 0),
        **raw["scheme"],
        "latency.l1_miss_mean_ps": raw["load_ps"] // raw["loads_missed"] if raw["loads_missed"] else 0,
        "latency.l1_miss_histogram": raw["load_histogram"],
        "latency.l2_miss_histogram": raw["memory_histogram"],
        "trace.skipped_copies": run.skipped_copies,
    }
    return ReplayResult(
        scheme=run.scheme_name,
        counters=counters,
        per_kernel=run.per_kernel,
        per_allocation=_per_allocation(run, raw["regions"]),
        utilization=_utilization(numbers, raw, time_ps),
        provenance=_provenance(run),
        speed={
            "seconds": seconds,
            "memory_instructions_per_s": raw["memory_instructions"] / seconds if seconds else 0.0,
            "line_accesses_per_s": raw["line_accesses"] / seconds if seconds else 0.0,
            "peak_rss_bytes": peak_rss_bytes(),
        },
    )


def _number(numbers: dict[str, object], name: str) -> int:
    value = numbers[name]
    assert isinstance(value, int)
    return value


def _per_allocation(run: Run, regions: list[tuple[int, int, int]]) -> list[dict[str, Any]]:
    rows = []
    for placed in run.layout.placed:
        fills, writebacks, buddy = regions[placed.region]
        target = run.targets.of(placed.allocation.index).name if run.targets else "1x"
        rows.append(
            {
                "index": placed.allocation.index,
                "name": placed.allocation.name,
                "bytes": placed.allocation.bytes,
                "space": placed.allocation.space,
                "target": target,
                "fills": fills,
                "writebacks": writebacks,
                "buddy_accesses": buddy,
                "buddy_access_share": buddy / (fills + writebacks) if fills + writebacks else 0.0,
            }
        )
    return sorted(rows, key=lambda row: row["index"])


def _utilization(numbers: dict[str, object], raw: dict[str, Any], time_ps: int) -> dict[str, float]:
    """Share of its limit that each kind of resource reached, its units together; of channels also the busiest one."""

    def share(busy_ps: float, units: int = 1) -> float:
        return busy_ps / (units * time_ps)

    burst_ps, pseudo = _number(numbers, "dram_burst_ps"), _number(numbers, "dram_pseudo")
    sms, slices = _number(numbers, "sms"), _number(numbers, "slices")
    link = _number(numbers, "link_bytes_per_s")
    l2_sectors = raw["l2_reads"] + raw["l2_writes"]
    return {
        "dram_channels": share(sum(raw["dram_bursts"]) * burst_ps, pseudo),
        "dram_busiest_channel": share(max(raw["dram_bursts"]) * burst_ps),
        "link_read": share(raw["link_read_total_bytes"] * 10**12 / link),
        "link_write": share(raw["link_write_total_bytes"] * 10**12 / link),
        "l2_slices": share(l2_sectors * _number(numbers, "slice_cost") / COST_PER_PS, slices),
        "crossbar_reply": share(raw["l2_reads"] * _number(numbers, "reply_cost") / COST_PER_PS, sms),
        "l1_ports": share(raw["line_accesses"] * _number(numbers, "l1_line_ps"), sms),
        "issue_slots": share(raw["issue_busy_ps"], sms * _number(numbers, "schedulers")),
    }


def _provenance(run: Run) -> dict[str, Any]:
    assumptions = {f"trace.{key}": text for key, text in run.trace.provenance.assumptions.items()}
    if run.trace.interrupted:
        assumptions["trace.interrupted"] = _interruption(run.trace)
    if run.scheme.uses_sizes:
        assumptions |= {f"sizes.{key}": text for key, text in run.sizes.assumptions.items()}
    assumptions |= run.scheme.assumptions
    assumptions["model"] = (
        "no TLB and no page walks; memory copies take no time; requests are placed when they issue (docs/model.md)"
    )
    return {
        **software(),
        "scheme": run.scheme_name,
        "machine": run.machine.name,
        "machine_checksum": run.machine.checksum,
        "trace": file_name(run.trace.path),
        "trace_checksum": run.trace.fingerprint,
        "seed": run.seed,
        "distribution": run.distribution,
        "threshold": run.threshold,
        "targets": {
            placed.allocation.name: run.targets.of(placed.allocation.index).name
            for placed in sorted(run.layout.placed, key=lambda placed: placed.allocation.index)
        }
        if run.targets
        else {},
        "kernels": [kernel.index for kernel in run.kernels],
        "gap_scale": str(run.gap_scale),
        "assumptions": assumptions,
    }


def _interruption(trace: Trace) -> str:
    """What an interrupted trace file still holds."""
    said = f"the file was interrupted; what it holds was replayed: launches recorded: {len(trace.kernels)}"
    for kernel in trace.kernels:
        if not kernel.complete:
            said += f", the last with {kernel.n_blocks} of its {kernel.grid_blocks} thread blocks"
    return said
