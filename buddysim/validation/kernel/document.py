"""The part of docs/validation-silicon.md that is about kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from buddysim.validation.comparison import FAIL, ComparedQuantity
from buddysim.validation.kernel.counter_data import FITTED
from buddysim.validation.kernel.pairs import KernelPair, accelsim_errors, quantity_errors

_COUNTED = (
    ("warp instructions", "warp_instructions"),
    ("global read sectors", "read_sectors"),
    ("L2 sectors", "l2_sectors"),
    ("DRAM sectors", "dram_sectors"),
    ("cycles", "cycles"),
)


def document(pairs: Sequence[KernelPair], quantities: Sequence[ComparedQuantity], old: int) -> Iterator[str]:
    """The part of docs/validation-silicon.md."""
    kept = [pair for pair in pairs if not pair.why_not]
    programs = list(dict.fromkeys(pair.program for pair in kept))
    yield "## Kernels of real programs"
    yield ""
    yield from _HEAD.splitlines()
    yield ""
    if old:
        yield f"**{old} of the stored results are of another version of the model or of `gv100`.**"
        yield ""
    yield f"{len(kept)} kernels of {len(programs)} programs are compared. ![cycles](validation-silicon-kernels.png)"
    yield ""
    yield from _programs(kept, programs)
    yield ""
    yield from _measures(quantities)
    yield ""
    yield from _left_out(pairs)
    yield from _LIMITS.splitlines()


def _programs(kept: Sequence[KernelPair], programs: Sequence[str]) -> Iterator[str]:
    """Replayed over measured: the median of each program's kernels."""
    yield "Replayed over measured, the median of each program's kernels; hit rates in percent, replayed / measured."
    yield ""
    names = " | ".join(name for name, _ in _COUNTED)
    yield f"| program | kernels | {names} | Accel-Sim's cycles | L1, loads | L2 |"
    yield f"|---|--:|{'--:|' * (len(_COUNTED) + 3)}"
    for program in programs:
        own = [pair for pair in kept if pair.program == program]
        ratios = [_ratio([(x, y) for _, x, y in quantity_errors(own, quantity).points]) for _, quantity in _COUNTED]
        theirs = _ratio([(x, y) for _, x, y in accelsim_errors(own).points])
        rates = [
            f"{_middle(own, 'replay', rate):.0f} / {_middle(own, 'measured', rate):.0f}"
            for rate in ("l1_hit_fraction", "l2_hit_fraction")
        ]
        fitted = " (fitted)" if program in FITTED else ""
        yield f"| {program}{fitted} | {len(own)} | {' | '.join([*ratios, theirs, *rates])} |"


def _ratio(points: Sequence[tuple[float, float]]) -> str:
    return f"{median(ours / theirs for ours, theirs in points if theirs):.3f}"


def _middle(pairs: Sequence[KernelPair], which: str, rate: str) -> float:
    return 100 * float(median(getattr(getattr(pair, which).counts, rate) for pair in pairs))


def _measures(quantities: Sequence[ComparedQuantity]) -> Iterator[str]:
    """Errors beside their goals, and Accel-Sim's."""
    theirs = {(row.subject, row.quantity): row.error for row in quantities if row.machine == "Accel-Sim"}
    yield "| programs | measure | replayed | tolerance | Accel-Sim |"
    yield "|---|---|--:|--:|--:|"
    for row in quantities:
        if row.machine == "Accel-Sim" or row.error is None:
            continue
        missed = row.status == FAIL
        error = f"**{_share(row.error)}**" if missed else _share(row.error)
        other = theirs.get((row.subject, row.quantity))
        yield f"| {row.subject} | {row.quantity} | {error} | {_share(row.tolerance)} | {_share(other)} |"
    yield ""
    yield "Bold: missed. The tolerance of test programs' cycles is twice Accel-Sim's figure."


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _left_out(pairs: Sequence[KernelPair]) -> Iterator[str]:
    """Kernels that are not compared, with the reason of each program's first."""
    left = [pair for pair in pairs if pair.why_not]
    if not left:
        return
    yield "Not compared:"
    yield ""
    for program in dict.fromkeys(pair.program for pair in left):
        own = [pair for pair in left if pair.program == program]
        yield f"- {program}: {len(own)} kernels; the first, {own[0].replay.name}: {own[0].why_not}"
    yield ""


_HEAD = """
Nsight Compute's counters of a Quadro GV100 beside replays on `gv100` of the same programs, captured on a CPU, each
kernel from cold caches. Which kernels are compared, what was fitted on which programs and what is a measure:
[validation-rules.md](validation-rules.md#kernels), written before the first comparison. Captures are too large to
come along: this part is made from the stored results of their replays (`buddysim/validation/data/gv100_replays.csv`).
`tools/capture_gpu_benchmarks.py` makes the captures, `validate kernels --captures FOLDER` replays them anew.
""".strip()

_LIMITS = """
### Limits

- A capture counts LLVM's code by SASS's instructions (docs/capture-opencl.md), not SASS itself, and of the OpenCL
  versions: CUDA's backprop has 1.2 and 2 times the warp instructions, CUDA's hotspot computes in double precision.
  lud has 1.2 times as many: four words in a row of shared memory are one load of SASS.
- Instruction caches are cold like all others: each SM fetches a kernel's code when its first warp gets there
  (docs/model.md). A capture knows the size of the code, estimated like its instructions, not where in it a warp is.
- Not modelled: constant caches and TLBs, which are cold too (assumed: what short kernels lose there is in the launch
  latency, which was fitted to them).
- pathfinder is too fast still, for a reason that is not known. Of backprop's first kernel and b+tree, which come next,
  the captures lack instructions; 2DConvolution waits for device memory, where reads among writes are too fast.
- bfs ran on another graph than the measured one, by the rules of the same generator.
- The counters' launch shapes are those of the CUDA programs' sources, not counted.
""".strip()
