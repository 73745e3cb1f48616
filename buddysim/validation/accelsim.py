"""Cycles of kernels on the machine that Accel-Sim models, compared with Accel-Sim's: programs and microbenchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from statistics import mean, median
from typing import Any

from buddysim.base.textfile import parse_toml
from buddysim.machine import Machine
from buddysim.machine.units import parse_time
from buddysim.replay import simulate
from buddysim.trace.shipped import shipped_trace
from buddysim.validation.comparison import (
    CORRELATION,
    MEDIAN_ERROR,
    ComparedQuantity,
    ValidationOptions,
    ValidationReport,
    Value,
)
from buddysim.validation.correlation import log_correlation

SUMMARY = "cycles of programs and microbenchmarks, compared with Accel-Sim's"
ORDER = 30

NAME, MACHINE = "accelsim", "qv100-accelsim"
COLUMNS = ("trace", "kind", "kernel", "cycles", "accelsim_cycles", "error_fraction", "fitted")
PROGRAM_TOLERANCE, MEAN_TOLERANCE, CORRELATION_TOLERANCE = 0.1, 0.05, 0.998
MICRO_MEDIAN_TOLERANCE, MICRO_MAX_TOLERANCE = 0.05, 0.25
MICRO = "microbenchmark"
SECTORS = "DRAM sectors"
_SECTOR_COUNTS = {"device_read": "DRAM sectors read", "device_write": "DRAM sectors written"}
FITTED = ("bfs-volta.bin", "vectoradd-turing.bin")
"""Programs whose cycles were in view when constants of the machine were chosen (docs/validation/accelsim.md)."""
_DATA = resources.files("buddysim.validation") / "data"


@dataclass(frozen=True)
class ComparedTrace:
    """The kernels of a trace, simulated by buddysim and by Accel-Sim.

    Attributes
    ----------
    trace : its file
    about : description of the program
    is_micro : a microbenchmark; else a program
    simulated, reference : cycles of each kernel, net of the launch latency: buddysim's, Accel-Sim's
    sectors : sectors that all kernels read from and wrote to device memory: simulated and reference, where known
    """

    trace: str
    about: str
    is_micro: bool
    simulated: Sequence[int]
    reference: Sequence[int]
    sectors: Mapping[str, tuple[int, int]]

    @property
    def name(self) -> str:
        return self.trace.removesuffix(".bin")

    @property
    def error(self) -> float:
        """Error of the sum over all kernels."""
        return sum(self.simulated) / sum(self.reference) - 1

    @property
    def errors(self) -> list[float]:
        return [simulated / reference - 1 for simulated, reference in zip(self.simulated, self.reference, strict=True)]


def compare(options: ValidationOptions) -> ValidationReport:
    """Replay every trace of the reference; only Accel-Sim's machine can be compared."""
    if options.machine not in (None, MACHINE):
        Machine.load(options.machine)
        unchecked = ComparedQuantity(NAME, str(options.machine), "every trace", "all", note="no figures of Accel-Sim")
        return ValidationReport([unchecked], COLUMNS, [], machines=[MACHINE])
    reference = parse_toml((_DATA / "accelsim.toml").read_text(encoding="utf-8"), "accelsim.toml")
    machine, traces, absent = Machine.load(MACHINE), list[ComparedTrace](), list[str]()
    for kind in ("program", "captured", MICRO):
        for entry in reference[kind]:
            path = path_of_trace(entry["trace"])
            if path is None:
                absent.append(entry["trace"])
                continue
            traces.append(replay_trace(machine, entry, path, reference["launch_cycles"], is_micro=kind == MICRO))
            options.progress(f"{traces[-1].name}: {traces[-1].error:+.1%}")
    quantities = [*compared_quantities(traces)]
    quantities += [
        ComparedQuantity(NAME, MACHINE, name, "all", note="this installation lacks the trace") for name in absent
    ]
    points = [row for trace in traces for row in point_rows(trace)]
    return ValidationReport(quantities, COLUMNS, points, machines=[MACHINE])


def path_of_trace(file: str) -> Path | None:
    """Path of a trace in the package or among its sources; None if neither has it."""
    bundled = Path(str(_DATA)) / "accelsim" / file
    return bundled if bundled.is_file() else shipped_trace(file).path


def replay_trace(
    machine: Machine, entry: Mapping[str, Any], path: Path, launch: int, *, is_micro: bool
) -> ComparedTrace:
    """Replay a trace of the reference.

    Parameters
    ----------
    machine : the machine that Accel-Sim simulated
    entry : Accel-Sim's numbers for the trace
    path : of the trace
    launch : launch latency in Accel-Sim's cycles
    is_micro : whether the trace is a microbenchmark
    """
    cycles = entry["cycles"]
    kernels = simulate(path, machine, "ideal", kernels=slice(0, len(cycles))).per_kernel
    traffic = entry.get("traffic", entry)
    sectors = {
        key: (sum(int(kernel[f"{key}_sectors"]) for kernel in kernels), int(traffic[key]))
        for key in _SECTOR_COUNTS
        if key in traffic
    }
    net_reference = [count - launch for count in cycles]
    return ComparedTrace(entry["trace"], entry["about"], is_micro, net_cycles(machine, kernels), net_reference, sectors)


def net_cycles(machine: Machine, kernels: Sequence[Mapping[str, Any]]) -> list[int]:
    """Cycles of kernels without their launch latency, which is no integer number of the engine's cycles."""
    launch_ps, cycle_ps = machine.ps(machine.kernel.launch_latency), machine.ps(parse_time("1 core_cycles"))
    return [(int(kernel["time_ps"]) - launch_ps) // cycle_ps for kernel in kernels]


def compared_quantities(traces: Sequence[ComparedTrace]) -> Iterator[ComparedQuantity]:
    """Yield the rows of the table of all comparisons."""
    programs = [trace for trace in traces if not trace.is_micro]
    for trace in traces:
        tolerance = None if trace.is_micro else PROGRAM_TOLERANCE
        note = "constants were chosen with it in view" if trace.trace in FITTED else ""
        yield ComparedQuantity(
            NAME, MACHINE, trace.name, "cycles", "cycles", sum(trace.simulated), sum(trace.reference),
            trace.error, tolerance, note,
        )  # fmt: skip
        for key, (simulated, reference) in trace.sectors.items():
            error = simulated / reference - 1 if reference else float(simulated > 0)
            quantity = _SECTOR_COUNTS[key]
            yield ComparedQuantity(
                NAME, MACHINE, trace.name, quantity, "sectors", simulated, reference, error, group=SECTORS
            )
    if programs:
        pairs = [pair for trace in programs for pair in zip(trace.simulated, trace.reference, strict=True)]
        correlation = log_correlation(pairs)
        yield ComparedQuantity(
            NAME, MACHINE, "programs", "log correlation", "", correlation, None, 1 - correlation,
            1 - CORRELATION_TOLERANCE, "error: 1 - r", CORRELATION,
        )  # fmt: skip
        yield ComparedQuantity(
            NAME, MACHINE, "programs", "mean error", error=mean(abs(trace.error) for trace in programs),
            tolerance=MEAN_TOLERANCE, error_kind=MEDIAN_ERROR,
        )  # fmt: skip
    errors = [abs(error) for trace in traces if trace.is_micro for error in trace.errors]
    if errors:
        for quantity, value, tolerance in (
            ("median error", median(errors), MICRO_MEDIAN_TOLERANCE),
            ("largest error", max(errors), MICRO_MAX_TOLERANCE),
        ):
            yield ComparedQuantity(
                NAME, MACHINE, "microbenchmarks", quantity, error=value, tolerance=tolerance, error_kind=MEDIAN_ERROR
            )


def point_rows(trace: ComparedTrace) -> Iterator[tuple[Value, ...]]:
    """Yield every kernel of a trace, for the CSV file."""
    kind = MICRO if trace.is_micro else "program"
    values = zip(trace.simulated, trace.reference, trace.errors, strict=True)
    for number, (simulated, reference, error) in enumerate(values):
        yield (trace.name, kind, number, simulated, reference, float(f"{error:.3g}"), int(trace.trace in FITTED))


def page_notes() -> str:
    """Return the causes of errors."""
    return _NOTES


PAGE_HEAD = """
## Cycles

The reference is simulated by Accel-Sim (GPGPU-Sim 4.2.0, configuration SM7_QV100). Machine `qv100-accelsim`, scheme
`ideal`. Cycles exclude the launch latency of 5,000 cycles. The tolerance of each program's total is 10 %. All traces
shown were in view while the model was changed: expect larger errors elsewhere. [Method](method.md#accel-sim) has the
rule, [accelsim.csv](accelsim.csv) every kernel.
""".strip()

_NOTES = """
### Remaining differences

| part | Accel-Sim | buddysim | effect in Accel-Sim |
|---|---|---|---|
| arbitration at a slice | SMs alternate, request by request | an SM's requests reserve every other slot | without \
waiting requests, the first two kernels of jacobi take 3,408 and 1,390 cycles, not 3,572 and 1,830 |
| replies | wait in a queue at each slice | share ports of slice and SM, without blocking | without waiting replies, \
jacobi takes 0.6 % less; backprop's kernels take 3,080 and 5,431 cycles, not 3,368 and 5,507 |
| streams from the L2 (`read16`, second kernel) | an SM that waits for a slice blocks the requests behind: \
3,739 cycles | 4,176 cycles | without waiting requests 3,159 cycles; the slices need 2,048 |
| write queue (vectorAdd) | one first-ready queue of 64 for reads and writes | watermarks 28 and 16 of a queue of \
writes | see below |
| eight warps of a scheduler in lockstep (`units`, dependent FADDs) | 21 cycles for eight instructions | 16 cycles | \
cause unknown |
| independent instructions of one warp (`units`) | 14 of 128 issue slots lost where registers repeat after 16 \
instructions, 6 after 32 | not modelled | cause unknown |

Each warp of the last `atomics` kernel sends 32 requests to one slice, twice. A model of the request queues alone takes
2,700 to 2,880 cycles with alternation and 2,030 without; Accel-Sim takes 2,659.
""".strip()
