"""How much memory a trace's allocations take, instant by instant."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.buddy import Targets
from buddysim.trace import Allocation, Kernel, Trace

WHOLE_ENTRY = 128


@dataclass(frozen=True)
class RefFootprint:
    """Bytes allocated and occupied at an instant."""

    allocated: int = 0
    device: int = 0
    buddy: int = 0
    metadata: int = 0
    host: int = 0


class RefCapacity:
    """The footprint of a run over time.

    Parameters
    ----------
    trace : the trace
    selected : kernels that run
    scheme : name of the replay scheme
    targets : target ratios
    bypass_1x : whether 1x targets need no metadata
    """

    def __init__(self, trace: Trace, selected: list[Kernel], scheme: str, targets: Targets, bypass_1x: bool) -> None:
        self.trace, self.scheme, self.targets, self.bypass_1x = trace, scheme, targets, bypass_1x
        kernels, end = trace.kernels, len(trace.events)
        first = selected[0].event if selected and selected[0].index else 0
        last = selected[-1].event if selected and selected[-1].index < len(kernels) - 1 else end
        changes = {a.alloc_event for a in trace.allocations} | {
            a.free_event for a in trace.allocations if a.free_event is not None
        }
        self.instants = [first, *sorted(p for p in changes if first < p <= last)]

    def at(self, position: int) -> RefFootprint:
        """Return the footprint at an event index."""
        live = [a for a in self.trace.allocations if a.live_at(position)]
        host = [a for a in live if a.space == "host" or self.scheme == "pinned-host"]
        device = [a for a in live if a not in host]
        device_bytes = {a.index: self._device_bytes(a) for a in device}
        return RefFootprint(
            allocated=sum(WHOLE_ENTRY * a.entries for a in device),
            device=sum(device_bytes[a.index] * a.entries for a in device),
            buddy=sum((WHOLE_ENTRY - device_bytes[a.index]) * a.entries for a in device),
            metadata=sum(-(-a.entries // 2) for a in device if self._has_metadata(a)),
            host=sum(WHOLE_ENTRY * a.entries for a in host),
        )

    def _device_bytes(self, allocation: Allocation) -> int:
        return self.targets.of(allocation.index).device_bytes_per_entry if self.scheme == "buddy" else WHOLE_ENTRY

    def _has_metadata(self, allocation: Allocation) -> bool:
        return self.scheme == "buddy" and not (self.bypass_1x and self.targets.of(allocation.index).name == "1x")

    @property
    def peak_entries(self) -> int:
        """Return the largest number of entries allocated at one instant, host memory excluded."""
        return max(self.at(instant).allocated for instant in self.instants) // WHOLE_ENTRY

    def counters(self, launches: list[tuple[int, int]], end_ps: int) -> dict[str, float]:
        """Return footprints and ratios by their names in docs/reference/replay-counters.md.

        Parameters
        ----------
        launches : of each kernel that ran, in the order of time: the position of its launch, and when it was (ps)
        end_ps : end of the run
        """
        instants = [self.at(instant) for instant in self.instants]
        fullest = max(instants, key=lambda footprint: footprint.device + footprint.metadata)
        largest = {
            "allocated": max(footprint.allocated for footprint in instants),
            "device": fullest.device,
            "buddy": max(footprint.buddy for footprint in instants),
            "metadata": fullest.metadata,
            "host": max(footprint.host for footprint in instants),
        }
        ends = [*(launched for _, launched in launches[1:]), end_ps]
        begins = [0, *ends][: len(launches)]  # copies may precede the first launch
        weighted = [(self.at(at), end - begin) for (at, _), begin, end in zip(launches, begins, ends, strict=True)]
        sums = {name: sum(weight * getattr(footprint, name) for footprint, weight in weighted) for name in largest}
        time = sum(weight for _, weight in weighted)
        return {
            "compression.ratio": ratio(largest["allocated"], largest["device"]),
            "compression.max_ratio": max(ratio(footprint.allocated, footprint.device) for footprint in instants),
            "compression.mean_ratio": ratio(sums["allocated"], sums["device"]),
            **{f"footprint.{name}_bytes": value for name, value in largest.items()},
            "footprint.used_device_bytes": largest["device"] + largest["metadata"],
            **{f"footprint.mean_{name}_bytes": value // time if time else 0 for name, value in sums.items()},
        }


def ratio(allocated: int, device: int) -> float:
    """Return bytes allocated / bytes of device memory; 1 if there are none."""
    return allocated / device if device else 1.0
