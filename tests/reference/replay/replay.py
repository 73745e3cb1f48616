"""The reference model's `simulate`: returns the counters of a trace on a machine."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from buddysim.buddy import SizeSource, Targets
from buddysim.machine import Machine
from buddysim.trace import Trace
from tests.reference.replay.arrival_order import RefArrivalRun
from tests.reference.replay.capacity import RefCapacity
from tests.reference.replay.numbers import RefNumbers
from tests.reference.replay.parts import RefComponents
from tests.reference.replay.results import results_of
from tests.reference.replay.run import RefRun
from tests.reference.replay.sizes import RefSizes
from tests.reference.replay.space import RefAddressSpace


def replay(
    trace: Trace,
    machine: Machine,
    scheme: str,
    targets: Targets,
    *,
    seed: int = 0,
    size_distribution: str = "isca20-hpc",
    kernels: slice | None = None,
    compute_gap_scale: Fraction | float = 1,
    exact_order: bool = False,
    make_run: Callable[..., RefRun] | None = None,
) -> dict[str, Any]:
    """Replay a trace slowly, with the parameters of `buddysim.simulate`.

    Parameters
    ----------
    trace : a trace
    machine : a machine
    scheme : name of a replay scheme
    targets : target ratios
    seed, size_distribution : of sizes that the trace doesn't have
    kernels : which kernels run; all without it
    compute_gap_scale : factor on every compute gap and critical path
    exact_order : lines reach L1 and L2 in the order of their arrival
    make_run : what runs it, of the parameters of `RefRun`

    Returns
    -------
    the counters of docs/reference/replay-counters.md that the simulation decides
    """
    selected = trace.kernels[kernels or slice(None)]
    numbers = RefNumbers(machine, Fraction(compute_gap_scale))
    space = RefAddressSpace(trace)
    source = SizeSource(trace, seed=seed, size_distribution=size_distribution)
    sizes = RefSizes(source, selected[0].launch_index if selected else 0)
    capacity = RefCapacity(trace, selected, scheme, targets, machine.buddy.bypass_1x)
    on_device = [
        allocation_range for allocation_range in space.ranges.values() if allocation_range.allocation.space != "host"
    ]
    parts = RefComponents(numbers, scheme, space.n_entries, sizes, on_device, capacity.peak_entries)
    make_run = make_run or (RefArrivalRun if exact_order else RefRun)
    run = make_run(trace, {kernel.index for kernel in selected}, targets, space, parts)
    return results_of(run, capacity)
