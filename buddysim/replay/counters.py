"""The counters of a run, by the names of `counter_definitions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.compress import SECTOR_BYTES
from buddysim.replay.engine.kinds import Queue, Traffic
from buddysim.replay.port_costs import COST_PER_PS
from buddysim.replay.schemes import counter_zeros, own_queues, own_traffic

#: Traffic of every scheme.
CHANNEL_KINDS = tuple(kind for kind in Traffic if kind != Traffic.SCHEME_TRAFFIC)

_BUSY = "_busy_ps"

if TYPE_CHECKING:
    from buddysim.replay.driver import ReplayRun


def counters_of(run: ReplayRun, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the counters of a run.

    Parameters
    ----------
    run : the run
    raw : what the engine counted (`ReplayEngine.counters`)
    """
    return {
        "time_ps": raw["now_ps"],
        "cycles": raw["now_ps"] // _number(run.numbers, "cycle_ps"),
        "warp_instructions": raw["warp_instructions"],
        "memory_instructions": raw["memory_instructions"],
        "line_accesses": raw["line_accesses"],
        "load_sectors": raw["load_sectors"],
        "store_sectors": raw["store_sectors"],
        **_cache_counters(raw),
        "l2.dirty_sectors_at_end": run.engine.dirty_sectors(),
        **_memory_counters(raw),
        **_own_traffic(run, raw),
        **_compression_counters(run, raw),
        **counter_zeros(),
        **raw["scheme"],
        "latency.l1_miss_mean_ps": raw["load_ps"] // raw["loads_missed"] if raw["loads_missed"] else 0,
        "latency.l1_miss_histogram": raw["load_histogram"],
        "latency.l2_miss_histogram": raw["memory_histogram"],
        **_waits(run, raw),
        "trace.skipped_copies": run.skipped_copies,
        "horizon.pushed": raw["pushed"],
    }


def _cache_counters(raw: dict[str, Any]) -> dict[str, Any]:
    return {
        "l1.sector_accesses": raw["l1_accesses"],
        "l1.sector_hits": raw["l1_hits"],
        "l1.sector_mshr_merges": raw["l1_mshr_merges"],
        "l1.sector_misses": raw["l1_accesses"] - raw["l1_hits"] - raw["l1_mshr_merges"],
        "l1.line_accesses": raw["l1_lines"],
        "l1.line_hits": raw["l1_line_hits"],
        "l2.sector_accesses": raw["l2_reads"] + raw["l2_writes"],
        "l2.sector_hits": raw["l2_read_hits"] + raw["l2_write_hits"],
        "l2.sector_mshr_merges": raw["l2_read_mshr_merges"],
        "l2.read_sectors": raw["l2_reads"],
        "l2.read_sector_hits": raw["l2_read_hits"],
        "l2.write_sectors": raw["l2_writes"],
        "l2.write_sector_hits": raw["l2_write_hits"],
        "l2.line_accesses": raw["l2_lines"],
        "l2.line_hits": raw["l2_line_hits"],
        "l2.read_sector_misses": raw["l2_read_misses"],
        "l2.fill_sectors": raw["fill_sectors"],
        "l2.fills": raw["fills"],
        "l2.writebacks": raw["writebacks"],
        "l2.writeback_sectors": raw["writeback_sectors"],
        "l2.sectors_made_dirty": raw["sectors_made_dirty"],
        "l2.dirty_sectors_overwritten": raw["dirty_sectors_overwritten"],
        "l2.dirty_sectors_freed": raw["dirty_sectors_freed"],
    }


def _memory_counters(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the traffic of device memory and of the link, by its kind."""
    device, link_in, link_out = raw["device"], raw["link_read"], raw["link_write"]
    return {
        "device.read_bytes": SECTOR_BYTES * sum(device[:3]),
        "device.write_bytes": SECTOR_BYTES * device[Traffic.WRITEBACK],
        "device.demand_bytes": SECTOR_BYTES * device[Traffic.DEMAND],
        "device.overfetch_bytes": SECTOR_BYTES * device[Traffic.OVERFETCH],
        "device.read_modify_write_bytes": SECTOR_BYTES * device[Traffic.READ_MODIFY_WRITE],
        "device.writeback_bytes": SECTOR_BYTES * device[Traffic.WRITEBACK],
        "device.bus_bytes": SECTOR_BYTES * sum(raw["dram_bursts"]),
        "device.channel_bytes": [SECTOR_BYTES * bursts for bursts in raw["dram_bursts"]],
        **{f"device.channel_{kind.name.lower()}_bytes": _of_channels(raw, kind) for kind in CHANNEL_KINDS},
        "device.queued_write_bytes": SECTOR_BYTES * sum(raw["dram_queued_bursts"]),
        "device.row_hits": sum(raw["dram_row_hits"]),
        "device.row_misses": sum(raw["dram_row_misses"]),
        "link.read_bytes": raw["link_read_total_bytes"],
        "link.write_bytes": raw["link_write_total_bytes"],
        "link.demand_bytes": link_in[Traffic.DEMAND],
        "link.overfetch_bytes": link_in[Traffic.OVERFETCH],
        "link.read_modify_write_bytes": link_in[Traffic.READ_MODIFY_WRITE],
        "link.writeback_bytes": link_out[Traffic.WRITEBACK],
    }


def _of_channels(raw: dict[str, Any], kind: int) -> list[int]:
    return [SECTOR_BYTES * moved[kind] for moved in raw["dram_moved"]]


def _own_traffic(run: ReplayRun, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the traffic of schemes' own kinds by pseudo-channel, 0 under other schemes."""
    own = {name: _of_channels(raw, Traffic.SCHEME_TRAFFIC + at) for at, name in enumerate(run.scheme.TRAFFIC)}
    none = [0] * len(raw["dram_moved"])
    return {f"device.channel_{name}_bytes": own.get(name, none) for name in own_traffic()}


def _waits(run: ReplayRun, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the waits at each queue, of the engine and of schemes; None if they are not counted."""
    waits, every = raw["waits"], tuple(queue for queue in Queue if queue != Queue.SCHEME_QUEUE)
    own = {name: waits and waits[Queue.SCHEME_QUEUE + at] for at, name in enumerate(run.scheme.QUEUES)}
    none = waits and [0] * len(waits[Queue.SCHEME_QUEUE])
    return {
        **{f"queueing.{queue.name.lower()}_histogram": waits and waits[queue] for queue in every},
        **{f"queueing.{name}_histogram": own.get(name, none) for name in own_queues()},
    }


def _compression_counters(run: ReplayRun, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the counters of the footprint and of entry sizes."""
    footprint, over_time = run.footprint, (run.launches, raw["now_ps"])
    largest = footprint.largest()
    entries = sum(p.end_entry - p.first_entry for p in run.address_space.ranges)
    extrapolated = run.entry_classes.extrapolated_entries if run.entry_classes else 0
    used = list(run.entry_classes.used.values()) if run.entry_classes else []
    used_entries, used_extrapolated = (sum(numbers) for numbers in zip(*used, strict=True)) if used else (0, 0)
    return {
        "compression.ratio": footprint.ratio(),
        "compression.max_ratio": footprint.max_ratio(),
        "compression.mean_ratio": footprint.mean_ratio(*over_time),
        **{f"footprint.{kind}_bytes": size for kind, size in largest.items()},
        "footprint.used_device_bytes": run.scheme.device_bytes(largest["device"] + largest["metadata"]),
        **{f"footprint.mean_{kind}_bytes": size for kind, size in footprint.mean(*over_time).items()},
        "sizes.synthetic_fraction": run.sizes.synthetic_fraction if run.entry_classes else 0.0,
        "sizes.extrapolated_fraction": extrapolated / entries if entries else 0.0,
        "sizes.extrapolated_mean_fraction": used_extrapolated / max(1, used_entries),
    }


def utilization_of(numbers: dict[str, object], raw: dict[str, Any]) -> dict[str, float]:
    """Return the utilization of each kind of resource, over all its units; of channels also that of the busiest one."""
    time_ps: int = max(1, raw["now_ps"])

    def fraction(busy_ps: float, units: int = 1) -> float:
        return busy_ps / (units * time_ps)

    burst_ps, pseudo = _number(numbers, "dram_burst_ps"), _number(numbers, "dram_pseudo")
    sms, slices = _number(numbers, "sms"), _number(numbers, "slices")
    link, link_write = _number(numbers, "link_bytes_per_s"), _number(numbers, "link_write_bytes_per_s")
    l2_sectors = raw["l2_reads"] + raw["l2_writes"]
    return {
        "dram_channels": fraction(sum(raw["dram_bursts"]) * burst_ps, pseudo),
        "dram_busiest_channel": fraction(max(raw["dram_bursts"]) * burst_ps),
        "link_read": fraction(raw["link_read_total_bytes"] * 10**12 / link),
        "link_write": fraction(raw["link_write_total_bytes"] * 10**12 / link_write),
        "l2_slices": fraction(l2_sectors * _number(numbers, "slice_cost") / COST_PER_PS, slices),
        "crossbar_reply": fraction(raw["l2_reads"] * _number(numbers, "reply_cost") / COST_PER_PS, sms),
        "l1": fraction((raw["line_accesses"] + raw["l1_conflict_cycles"]) * _number(numbers, "l1_line_ps"), sms),
        "issue_slots": fraction(raw["issue_busy_ps"], sms * _number(numbers, "schedulers")),
        **{
            name.removesuffix(_BUSY).replace(".", "_"): fraction(raw["scheme"].get(name, 0))
            for name in _busy_counters()
        },
    }


def _busy_counters() -> list[str]:
    """Return the counters of schemes that are the busy time of a unit that serves one request at a time."""
    return [name for name in counter_zeros() if name.endswith(_BUSY)]


def _number(numbers: dict[str, object], name: str) -> int:
    value = numbers[name]
    assert isinstance(value, int)
    return value
