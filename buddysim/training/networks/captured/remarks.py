"""What is said of a captured script's result: where its peak differs from the capture's, what is generic in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import Tape
from buddysim.training.networks.captured.known_operators import is_generic
from buddysim.training.networks.recorded.work import OperationWork, work_of

if TYPE_CHECKING:
    from buddysim.training.networks.recorded.captured_step import CapturedStep
    from buddysim.training.networks.recorded.network import RecordedNetwork

#: Relative difference of two peaks from which it is said.
TOLERANCE = 0.02
#: The time of an operation in picoseconds.
OperationTime = Callable[[OperationWork], int]


def remarks(network: RecordedNetwork, operation_ps: OperationTime) -> dict[str, str]:
    """Return what is to be said of a captured network, by subject; nothing of another one."""
    step = network.captured
    if step is None:
        return {}
    said = {"generic": _generic(network.tape, operation_ps)}
    if network.batch != step.batch:
        return said | {"batch": _scaling(network, step)}
    own, peak = step.peak_bytes, network.tape.peak_bytes()
    if own and abs(peak / own - 1) > TOLERANCE:
        said["capture"] = (
            f"Eager's peak of tensors is {peak / own - 1:+.1%} against the capture's own {own / 2**20:,.1f} MiB: "
            "a GPU stores dropout's noise in a byte an element, attention with dropout and LSTMs as their kernels do, "
            "and updates all weights at once."
        )
    return said


def generic_fractions(tape: Tape, operation_ps: OperationTime) -> tuple[float, float]:
    """Return the fractions of the operators' time, and of the memory at the peak, that are of generic operators."""
    times = [(is_generic(one.name), operation_ps(work_of(one)) * one.times) for one in tape.operations]
    generic = sum(time for is_one, time in times if is_one)
    storages = {one.number for one in tape.storages if one.phase != "setup" and is_generic(one.producer)}
    return generic / max(1, sum(time for _, time in times)), _fraction_at_peak(tape, storages)


def _fraction_at_peak(tape: Tape, storages: Collection[int]) -> float:
    """The fraction of memory at the peak that some storages take."""
    total = peak = of_these = at_peak = 0
    for event in tape.events:
        if isinstance(event, AllocationEvent | FreeEvent):
            change = event.bytes if isinstance(event, AllocationEvent) else -event.bytes
            total += change
            of_these += change if event.storage in storages else 0
            if total > peak:
                peak, at_peak = total, of_these
    return at_peak / max(1, peak)


def _scaling(network: RecordedNetwork, step: CapturedStep) -> str:
    fixed = _fraction_at_peak(network.tape, step.fixed_storages)
    said = (
        f"Batch {network.batch} from a capture of {step.batch}: {fixed:.0%} of memory at the peak doesn't depend on it."
    )
    if step.by_extents:
        said += f" Results of {step.by_extents} follow the data: as many for each sample as captured."
    return said


def _generic(tape: Tape, operation_ps: OperationTime) -> str:
    time, memory = generic_fractions(tape, operation_ps)
    names = Counter(one.name for one in tape.operations if is_generic(one.name))
    most = ", ".join(name for name, _ in names.most_common(3))
    listed = f" ({most}{', ..' if len(names) > 3 else ''})" if names else ""
    return f"Generic operators{listed}: {time:.0%} of the operators' time, {memory:.0%} of memory at the peak."
