"""The counters of a run, by the names of `counter_definitions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from buddysim.base.plugin_modules import source_of_module
from buddysim.base.returned import WrongReturn
from buddysim.replay.component.counted import busy_fraction
from buddysim.replay.counter_definitions import OF_PARTS
from buddysim.replay.dram.counters import bytes_by_channel
from buddysim.replay.primitives.kinds import Queue, Traffic
from buddysim.replay.schemes import counter_zeros, own_queues, own_traffic

_BUSY = "_busy_ps"
_UTILIZATION = "utilization."

if TYPE_CHECKING:
    from buddysim.replay.driver import ReplayRun


def counters_of(run: ReplayRun, counted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counters of a run.

    Parameters
    ----------
    run : the run
    counted : what it counted (`everything_counted`)

    Raises
    ------
    WrongReturn
        the scheme counted less than its COUNTERS declare
    """
    _require_declared(run.scheme, counted["scheme"])
    return {
        **{name: one.value(counted) for name, one in OF_PARTS.items() if not name.startswith(_UTILIZATION)},
        **_own_traffic(run, counted),
        **_compression_counters(run, counted),
        **counter_zeros(),
        **counted["scheme"],
        **_own_waits(run, counted),
        **run.copies.counts,
        "horizon.pushed": counted["pushed"],
    }


def _require_declared(scheme: Any, counted: Mapping[str, Any]) -> None:
    for name in sorted(scheme.COUNTERS.keys() - counted.keys()):
        module = type(scheme).__module__
        message = f"replay scheme of {module}: counters returned no {name}, which COUNTERS declares"
        raise WrongReturn(message, source_of_module(module))


def everything_counted(run: ReplayRun) -> dict[str, Any]:
    """Return what the values of parts' counters are made of (`component.counted`)."""
    return {**run.engine.counters(), "numbers": run.numbers, "dirty_sectors_at_end": run.engine.dirty_sectors()}


def _own_traffic(run: ReplayRun, counted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the traffic of schemes' own kinds by pseudo-channel, 0 under other schemes."""
    own = {name: bytes_by_channel(counted, Traffic.SCHEME_TRAFFIC + at) for at, name in enumerate(run.scheme.TRAFFIC)}
    none = [0] * len(counted["dram_moved"])
    return {f"device.channel_{name}_bytes": own.get(name, none) for name in own_traffic()}


def _own_waits(run: ReplayRun, counted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the waits at queues of schemes' own; None if they are not counted."""
    waits = counted["waits"]
    own = {name: waits and waits[Queue.SCHEME_QUEUE + at] for at, name in enumerate(run.scheme.QUEUES)}
    none = waits and [0] * len(waits[Queue.SCHEME_QUEUE])
    return {f"queueing.{name}_histogram": own.get(name, none) for name in own_queues()}


def _compression_counters(run: ReplayRun, counted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counters of the footprint and of entry sizes."""
    footprint, over_time = run.footprint, (run.launches, counted["now_ps"])
    entries = sum(one.allocation.entries for one in run.address_space.ranges)
    extrapolated = run.entry_classes.extrapolated_entries if run.entry_classes else 0
    used = list(run.entry_classes.used.values()) if run.entry_classes else []
    used_entries, used_extrapolated = (sum(numbers) for numbers in zip(*used, strict=True)) if used else (0, 0)
    return {
        "compression.ratio": footprint.ratio(),
        "compression.max_ratio": footprint.max_ratio(),
        "compression.mean_ratio": footprint.mean_ratio(*over_time),
        **{f"footprint.{kind}_bytes": size for kind, size in footprint.largest().items()},
        "footprint.used_device_bytes": run.scheme.device_bytes(footprint.largest_device_bytes()),
        **{f"footprint.mean_{kind}_bytes": size for kind, size in footprint.mean(*over_time).items()},
        "sizes.synthetic_fraction": run.sizes.synthetic_fraction if run.entry_classes else 0.0,
        "sizes.extrapolated_fraction": extrapolated / entries if entries else 0.0,
        "sizes.extrapolated_mean_fraction": used_extrapolated / max(1, used_entries),
    }


def utilization_of(counted: Mapping[str, Any]) -> dict[str, float]:
    """Return the utilization of each kind of resource, over all its units; of channels also that of the busiest one.

    Parameters
    ----------
    counted : what the run counted (`everything_counted`)
    """
    of_parts = {name: one.value(counted) for name, one in OF_PARTS.items() if name.startswith(_UTILIZATION)}
    return {
        **{name.removeprefix(_UTILIZATION): fraction for name, fraction in of_parts.items()},
        **{
            name.removesuffix(_BUSY).replace(".", "_"): busy_fraction(counted, counted["scheme"].get(name, 0))
            for name in _busy_counters()
        },
    }


def _busy_counters() -> list[str]:
    """Return the counters of schemes that are the busy time of a unit that serves one request at a time."""
    return [name for name in counter_zeros() if name.endswith(_BUSY)]
