"""Cycles of kernels beside Accel-Sim's own, on the machine that it models: programs and microbenchmarks as SASS."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from statistics import mean, median
from typing import Any

from buddysim.machine import Machine
from buddysim.machine.units import parse_time
from buddysim.replay import simulate
from buddysim.trace.shipped import shipped_trace
from buddysim.validation.comparison import ComparedQuantity, ValidationOptions, ValidationReport, Value
from buddysim.validation.correlation import log_correlation

SUMMARY = "cycles of programs and microbenchmarks, beside Accel-Sim's"
ORDER = 30

NAME, MACHINE = "accelsim", "qv100-accelsim"
COLUMNS = ("trace", "kind", "kernel", "cycles", "accelsim_cycles", "error_fraction", "fitted")
PROGRAM_TOLERANCE, MEAN_TOLERANCE, CORRELATION_TOLERANCE = 0.1, 0.05, 0.998
MICRO_MEDIAN_TOLERANCE, MICRO_WORST_TOLERANCE = 0.05, 0.25
MICRO = "microbenchmark"
FITTED = ("bfs-volta.bin", "vectoradd-turing.bin")
"""Programs whose figures were in view when constants of the machine were chosen (docs/validation-accelsim.md)."""
_DATA = resources.files("buddysim.validation") / "data"


@dataclass(frozen=True)
class ComparedTrace:
    """A trace's kernels.

    Attributes
    ----------
    trace : its file
    about : what it is
    is_micro : a microbenchmark; else a program
    ours, theirs : cycles of each kernel, net of the launch latency
    sectors : read from and written to device memory by all kernels: ours and theirs, where known
    """

    trace: str
    about: str
    is_micro: bool
    ours: Sequence[int]
    theirs: Sequence[int]
    sectors: Mapping[str, tuple[int, int]]

    @property
    def name(self) -> str:
        return self.trace.removesuffix(".bin")

    @property
    def error(self) -> float:
        """Of all kernels together."""
        return sum(self.ours) / sum(self.theirs) - 1

    @property
    def errors(self) -> list[float]:
        return [ours / theirs - 1 for ours, theirs in zip(self.ours, self.theirs, strict=True)]


def compare(options: ValidationOptions) -> ValidationReport:
    """Replays every trace of the reference; on another machine than Accel-Sim's there is nothing to compare."""
    if options.machine not in (None, MACHINE):
        Machine.load(options.machine)
        return ValidationReport(
            [ComparedQuantity(NAME, str(options.machine), "every trace", "all", note="no figures")], COLUMNS, []
        )
    stated = tomllib.loads((_DATA / "accelsim.toml").read_text(encoding="utf-8"))
    machine, found, absent = Machine.load(MACHINE), list[ComparedTrace](), list[str]()
    for kind in ("program", "captured", MICRO):
        for one in stated[kind]:
            path = trace_of(one["trace"])
            if path is None:
                absent.append(one["trace"])
                continue
            found.append(replay(machine, one, path, stated["launch_cycles"], is_micro=kind == MICRO))
            options.progress(f"{found[-1].name}: {found[-1].error:+.1%}")
    quantities = [*compared_quantities(found)]
    quantities += [
        ComparedQuantity(NAME, MACHINE, name, "all", note="this installation lacks the trace") for name in absent
    ]
    return ValidationReport(
        quantities, COLUMNS, [row for one in found for row in rows(one)], [*document(found, quantities)]
    )


def trace_of(file: str) -> Path | None:
    """Where a trace lies: with the package, or with its sources; None where neither has it."""
    own = Path(str(_DATA)) / "accelsim" / file
    return own if own.is_file() else shipped_trace(file).path


def replay(machine: Machine, stated: Mapping[str, Any], path: Path, launch: int, *, is_micro: bool) -> ComparedTrace:
    """A trace of the reference."""
    theirs = stated["cycles"]
    kernels = simulate(path, machine, "ideal", kernels=slice(0, len(theirs))).per_kernel
    known = stated.get("traffic", stated)
    sectors = {
        key: (sum(int(kernel[f"{key}_sectors"]) for kernel in kernels), int(known[key]))
        for key in ("device_read", "device_write")
        if key in known
    }
    ours = net_cycles(machine, kernels)
    return ComparedTrace(
        stated["trace"], stated["about"], is_micro, ours, [cycles - launch for cycles in theirs], sectors
    )


def net_cycles(machine: Machine, kernels: Sequence[Mapping[str, Any]]) -> list[int]:
    """Cycles of kernels without their launch latency, which is no whole number of the engine's cycles."""
    launch_ps, cycle_ps = machine.ps(machine.kernel.launch_latency), machine.ps(parse_time("1 core_cycles"))
    return [(int(kernel["time_ps"]) - launch_ps) // cycle_ps for kernel in kernels]


def compared_quantities(found: Sequence[ComparedTrace]) -> Iterator[ComparedQuantity]:
    """Rows of the table of all comparisons."""
    programs = [one for one in found if not one.is_micro]
    for one in found:
        tolerance = None if one.is_micro else PROGRAM_TOLERANCE
        note = "constants were chosen with it in view" if one.trace in FITTED else ""
        total, theirs = sum(one.ours), sum(one.theirs)
        yield ComparedQuantity(
            NAME, MACHINE, one.name, "cycles of all kernels", "cycles", total, theirs, one.error, tolerance, note
        )
        for key, (mine, accelsim) in one.sectors.items():
            error = mine / accelsim - 1 if accelsim else float(mine > 0)
            yield ComparedQuantity(NAME, MACHINE, one.name, f"{key} sectors", "sectors", mine, accelsim, error)
    if programs:
        pairs = [pair for one in programs for pair in zip(one.ours, one.theirs, strict=True)]
        correlation, off = log_correlation(pairs), mean(abs(one.error) for one in programs)
        allowed = 1 - CORRELATION_TOLERANCE
        yield ComparedQuantity(
            NAME, MACHINE, "programs", "log correlation of kernels", "of 1", correlation, None, 1 - correlation,
            allowed, "error: 1 - correlation",
        )  # fmt: skip
        yield ComparedQuantity(NAME, MACHINE, "programs", "mean error of totals", error=off, tolerance=MEAN_TOLERANCE)
    errors = [abs(error) for one in found if one.is_micro for error in one.errors]
    if errors:
        yield ComparedQuantity(
            NAME, MACHINE, "microbenchmarks", "median error", error=median(errors), tolerance=MICRO_MEDIAN_TOLERANCE
        )
        yield ComparedQuantity(
            NAME, MACHINE, "microbenchmarks", "largest error", error=max(errors), tolerance=MICRO_WORST_TOLERANCE
        )


def rows(one: ComparedTrace) -> Iterator[tuple[Value, ...]]:
    """Every kernel, for the CSV file."""
    kind = MICRO if one.is_micro else "program"
    for number, (ours, theirs, error) in enumerate(zip(one.ours, one.theirs, one.errors, strict=True)):
        yield (one.name, kind, number, ours, theirs, float(f"{error:.3g}"), int(one.trace in FITTED))


def document(found: Sequence[ComparedTrace], quantities: Sequence[ComparedQuantity]) -> Iterator[str]:
    """The part of docs/validation-silicon.md."""
    yield "## Cycles, beside Accel-Sim"
    yield ""
    yield "The rule: [validation-rules.md](validation-rules.md#accel-sim). Machine `qv100-accelsim`, scheme `ideal`;"
    yield "cycles net of the launch latency. What was chosen with figures in view, and the kernels of bfs and vectorAdd"
    yield "one by one: [validation-accelsim.md](validation-accelsim.md)."
    for is_micro, title in ((False, "program"), (True, MICRO)):
        yield ""
        yield f"| {title} | kernels | cycles / Accel-Sim's | in all | kernels, least to most |"
        yield "|---|--:|--:|--:|--:|"
        for one in (one for one in found if one.is_micro == is_micro):
            shown = f"{one.error:+.1%}" if is_micro or abs(one.error) <= PROGRAM_TOLERANCE else f"**{one.error:+.1%}**"
            span = f"{min(one.errors):+.1%} to {max(one.errors):+.1%}"
            cycles = f"{sum(one.ours):,} / {sum(one.theirs):,}"
            yield f"| `{one.name}`: {one.about} | {len(one.ours)} | {cycles} | {shown} | {span} |"
    yield ""
    for row in quantities:
        if row.subject in ("programs", "microbenchmarks") and row.error is not None and row.tolerance is not None:
            what = f"{row.error:.2%} ({row.note or 'tolerance'}, {row.tolerance:.1%}: {row.status})"
            yield f"- {row.subject}, {row.quantity}: {what}"
    yield ""
    yield from _LIMITS.splitlines()


_LIMITS = """
### What is still different

- **Turns of requests** (`crossbar.turns`): SMs that want one slice take turns there, request by request. Here an
  instruction's requests are booked when it issues, those of the first SM before those of the next, and the next one's
  leave every other slot to others. That stands in for turns of two; of more than two each gets less there. With queues
  that make nobody wait, Accel-Sim's first two kernels of jacobi take 3,408 and 1,390 cycles, not 3,572 and 1,830. Of
  the last kernel of `atomics` each warp sends 32 requests to one slice, then 32 more: a model of the queues of requests
  alone takes 2,700 to 2,880 cycles with turns and 2,030 without, Accel-Sim 2,659.
- **Replies** wait in a queue at each slice there, and here take turns at slice and SM, where none holds up those
  behind it. With queues of replies that make nobody wait, Accel-Sim takes 0.6 % less for jacobi, and for backprop's two
  kernels 3,080 and 5,431 cycles, not 3,368 and 5,507 (with both kinds of queues so: 3,059 and 4,795): most of what the
  first of them is too fast here.
- **Streams from the L2** (`read16`'s second kernel): 4 MB are 2,048 cycles of each slice, at a sector a cycle; they
  take 3,739 in Accel-Sim: requests of 256 B come to one slice together (`l2.interleave`), and SMs that wait for it hold
  up what is behind them in their queues. With queues of requests that make nobody wait it takes 3,159 there.
- **Device memory** (vectorAdd): the marks of the write queue (28 and 16) are those that GPGPU-Sim has where writes
  have a queue of their own; SM7_QV100 has one first-ready queue of 64 for both.
- **Eight warps a scheduler in step** (`units`: chains of FADD in 80 blocks of 1,024 threads): a turn of eight takes
  21 cycles there, here 16, as the unit allows. With four warps, or without dependences, both take the same. Not found.
- **Independent instructions of one warp** (`units`): of a unit's turns some 14 in 128 are lost there where registers
  are written again after 16 instructions, 6 where after 32. Not found.
""".strip()
