"""The part of docs/validation/hardware.md about kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from buddysim.validation.comparison import FAIL, ComparedQuantity
from buddysim.validation.kernel.counter_data import FITTED
from buddysim.validation.kernel.pairs import KernelPair, accelsim_errors, quantity_errors

_COUNTERS = (
    ("warp instructions", "warp_instructions"),
    ("global read sectors", "read_sectors"),
    ("L2 sectors", "l2_sectors"),
    ("DRAM sectors", "dram_sectors"),
    ("cycles", "cycles"),
)


def document(pairs: Sequence[KernelPair], quantities: Sequence[ComparedQuantity], n_outdated: int) -> Iterator[str]:
    """Yield the lines of docs/validation/hardware.md about kernels."""
    compared = [pair for pair in pairs if not pair.why_not]
    programs = list(dict.fromkeys(pair.program for pair in compared))
    yield "## Kernels of real programs"
    yield ""
    yield f"{len(compared)} kernels of {len(programs)} programs are compared. {_HEAD}"
    yield ""
    if n_outdated:
        yield f"**{n_outdated} of the stored results are of another version of the model or of `gv100`.**"
        yield ""
    yield "![measured and simulated cycles](kernels.png)"
    yield ""
    yield from _program_table(compared, programs)
    yield ""
    yield from _error_table(quantities)
    yield ""
    yield from _excluded_kernels(pairs)
    yield from _LIMITS.splitlines()


def _program_table(compared: Sequence[KernelPair], programs: Sequence[str]) -> Iterator[str]:
    """Yield replayed over measured: the median of each program's kernels."""
    yield "Simulated over measured, median of each program's kernels. Hit rates in percent: simulated / measured."
    yield ""
    names = " | ".join(name for name, _ in _COUNTERS)
    yield f"| program | kernels | {names} | Accel-Sim's cycles | L1, loads | L2 |"
    yield f"|---|--:|{'--:|' * (len(_COUNTERS) + 3)}"
    for program in programs:
        pairs = [pair for pair in compared if pair.program == program]
        ratios = [
            _median_ratio([(x, y) for _, x, y in quantity_errors(pairs, quantity).points]) for _, quantity in _COUNTERS
        ]
        accelsim = _median_ratio([(x, y) for _, x, y in accelsim_errors(pairs).points])
        rates = [
            f"{_median_percent(pairs, 'replay', rate):.0f} / {_median_percent(pairs, 'measured', rate):.0f}"
            for rate in ("l1_hit_fraction", "l2_hit_fraction")
        ]
        fitted = " (fitted)" if program in FITTED else ""
        yield f"| {program}{fitted} | {len(pairs)} | {' | '.join([*ratios, accelsim, *rates])} |"


def _median_ratio(points: Sequence[tuple[float, float]]) -> str:
    return f"{median(simulated / measured for simulated, measured in points if measured):.3f}"


def _median_percent(pairs: Sequence[KernelPair], source: str, rate: str) -> float:
    return 100 * float(median(getattr(getattr(pair, source).counters, rate) for pair in pairs))


def _error_table(quantities: Sequence[ComparedQuantity]) -> Iterator[str]:
    """Yield the errors, their tolerances, and Accel-Sim's errors."""
    accelsim = {(row.subject, row.quantity): row.error for row in quantities if row.machine == "Accel-Sim"}
    yield "| programs | quantity | error | tolerance | Accel-Sim's error |"
    yield "|---|---|--:|--:|--:|"
    for row in quantities:
        if row.machine == "Accel-Sim" or row.error is None:
            continue
        error = f"**{_percent(row.error)}**" if row.status == FAIL else _percent(row.error)
        accelsim_error = _percent(accelsim.get((row.subject, row.quantity)))
        yield f"| {row.subject} | {row.quantity} | {error} | {_percent(row.tolerance)} | {accelsim_error} |"
    yield ""
    yield "Bold: outside tolerance. The tolerance of test programs' cycles is twice Accel-Sim's error."


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _excluded_kernels(pairs: Sequence[KernelPair]) -> Iterator[str]:
    """Yield the programs with kernels that are not compared, and the reason of each program's first."""
    excluded = [pair for pair in pairs if pair.why_not]
    if not excluded:
        return
    yield "Kernels that are not compared:"
    yield ""
    for program in dict.fromkeys(pair.program for pair in excluded):
        kernels = [pair for pair in excluded if pair.program == program]
        yield f"- {program}: {len(kernels)} kernels; the first, {kernels[0].replay.name}: {kernels[0].why_not}"
    yield ""


_HEAD = """
The reference is Nsight Compute on a Quadro GV100. The programs are captured on a CPU and replayed on `gv100`, each
kernel from cold caches. [Method](method.md#kernels) says which kernels are compared and what is fitted. The captures
are not bundled; this part comes from stored results (`buddysim/validation/data/gv100_replays.csv`). Make captures with
`tools/capture_gpu_benchmarks.py`, and replay them with `validate kernels --captures FOLDER`. Every kernel:
[kernels.csv](kernels.csv).
""".strip().replace("\n", " ")

_LIMITS = """
### Limits

- [Captures](../how-to/capture-opencl.md) estimate SASS instructions from LLVM's code of the OpenCL versions. CUDA's
  backprop has 1.2 and 2 times the warp instructions, and CUDA's hotspot computes in double precision. lud has 1.2 times
  as many: four words of shared memory are one load of SASS.
- Instruction caches start cold. A capture has the estimated size of the code, but no program counters.
- Constant caches and TLBs are not modelled. *Assumed*: the launch latency, fitted to short kernels, includes their
  misses.
- The error of pathfinder has no known cause. The captures of backprop's first kernel and of b+tree lack instructions.
  2DConvolution waits for device memory, where the simulated reads between writes are too fast.
- bfs runs on another graph than the measured one, made by the rules of the same generator.
- Launch shapes of the reference come from the CUDA sources, not from counters.
""".strip()
