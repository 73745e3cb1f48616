"""The paper's machine, compared with the preset that represents it; and values that are not compared."""

from __future__ import annotations

from functools import cache
from typing import Any

from buddysim.analyses import AnalysisOptions
from buddysim.buddy import ALL_TARGETS, TARGET, ProfileOptions
from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.machine import Machine
from buddysim.papers.buddy.buddy_study import BuddyStudy
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.engines.machines import in_base_units

METADATA_BITS = 4
SNAPSHOTS = 10
#: Keys of the preset, and the key's value of one of the paper's units.
_KEYS = {
    "buddy-core-clock": ("clock.core", 1e9),
    "buddy-schedulers": ("sm.schedulers", 1),
    "buddy-warps": ("sm.warps", 1),
    "buddy-l1": ("l1.size", 1024),
    "buddy-line": ("l2.line", 1),
    "buddy-scratchpad": ("sm.shared_memory", 1024),
    "buddy-l2": ("l2.size", 2**20),
    "buddy-l2-slices": ("l2.slices", 1),
    "buddy-l2-ways": ("l2.ways", 1),
    "buddy-channels": ("dram.channels", 1),
    "buddy-dram-clock": ("clock.dram", 1e6),
    "buddy-metadata-ways": ("metadata_cache.ways", 1),
    "buddy-link": ("link.bandwidth", 1e9),
    "buddy-carve-out": ("buddy.carve_out_ratio", 1),
}


@cache
def _preset() -> dict[str, Any]:
    machine = Machine.load(str(AnalysisOptions.machine))
    return dict(in_base_units(machine, machine.clocks))


@simulates(*_KEYS)
def keys(study: BuddyStudy, id: str) -> SimulatedValue:
    key, unit = _KEYS[id]
    return SimulatedValue(float(_preset()[key]) / unit)


@simulates("buddy-metadata-slice", "buddy-latency", "buddy-device-bandwidth", "buddy-link-to-device")
def derived(study: BuddyStudy, id: str) -> SimulatedValue:
    preset = _preset()
    device = preset["dram.channels"] * preset["dram.pseudo_channels"] * preset["dram.pseudo_channel_bandwidth"]
    return SimulatedValue(
        {
            "buddy-metadata-slice": preset["metadata_cache.size"] / preset["metadata_cache.slices"] / 1024,
            "buddy-latency": preset["compression.latency"] * preset["clock.dram"] / 1e12,
            "buddy-device-bandwidth": device / 1e9,
            "buddy-link-to-device": device / preset["link.bandwidth"],
        }[id]
    )


@simulates(
    "buddy-entry", "buddy-sector", "buddy-ratios", "buddy-kept-16x", "buddy-threshold", "buddy-metadata-bits",
    "buddy-metadata-share", "buddy-prefetch", "buddy-snapshots",
)  # fmt: skip
def rules(study: BuddyStudy, id: str) -> SimulatedValue:
    """Values of the scheme's rules."""
    entries_of_a_line = 8 * _preset()["metadata_cache.line"] / METADATA_BITS
    values_by_id: dict[str, float | tuple[float, ...]] = {
        "buddy-entry": float(ENTRY_BYTES),
        "buddy-sector": float(SECTOR_BYTES),
        "buddy-ratios": tuple(round(ENTRY_BYTES / target.device_bytes_per_entry, 2) for target in ALL_TARGETS[:4]),
        "buddy-kept-16x": float(TARGET["16x"].device_bytes_per_entry),
        "buddy-threshold": 100 * ProfileOptions.threshold,
        "buddy-metadata-bits": float(METADATA_BITS),
        "buddy-metadata-share": round(100 * METADATA_BITS / 8 / ENTRY_BYTES, 1),
        "buddy-prefetch": entries_of_a_line - 1,
        "buddy-snapshots": float(SNAPSHOTS),
    }
    return SimulatedValue(values_by_id[id])


_SIZES = (
    "351-palm", "352-ep", "354-cg", "355-seismic", "356-sp", "357-csp", "360-ilbdc", "370-bt", "ff-hpgmg", "ff-lulesh",
    "biglstm", "alexnet", "inception-v2", "squeezenet", "vgg16", "resnet50",
)  # fmt: skip


@simulates(*(f"buddy-size-{name}" for name in _SIZES))
def footprints(study: BuddyStudy, id: str) -> SimulatedValue:
    """Return a value of the replayed input at the study's scale, from its findings."""
    name = study.names_in_order()[_SIZES.index(id.removeprefix("buddy-size-"))]
    rows = study.analysis_rows(name, "ratio") if name in study.names() else None
    if rows is None:
        return SimulatedValue(None, note="not stored")
    return SimulatedValue(max(row["allocated_bytes"] for row in rows) / 1e9, note=f"scale {study.scale}")


@simulates("buddy-page-table", "buddy-instructions", "buddy-correlation", "buddy-gpgpusim", "buddy-speed")
def not_compared(study: BuddyStudy, id: str) -> SimulatedValue:
    return SimulatedValue(None)


@simulates("buddy-metadata-line")
def metadata_line(study: BuddyStudy) -> SimulatedValue:
    return SimulatedValue(float(_preset()["metadata_cache.line"]))
