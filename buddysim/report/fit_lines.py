"""The answer of `fit` in three lines: whether it fits, at what speed, what limits next."""

from __future__ import annotations

from buddysim.report.quantities import format_bytes, format_gib, format_significant, format_time, format_whole_percent
from buddysim.training.fitting.fit_result import FitResult

#: A cause of stalls is the limit from this part of the time on.
_MATTERS = 0.05
_VISIBLE = 0.0005
_CAUSES = {
    "host": "the host's updates",
    "offload": "copies to the host",
    "prefetch": "copies back from the host",
    "on-demand": "copies that nothing overlaps",
    "copy-out": "copies that nothing overlaps",
    "gather": "gathers from other GPUs",
    "reduce": "reductions over GPUs",
}


def answer_lines(result: FitResult) -> list[str]:
    """Return three lines: whether it fits, at what speed, what limits next."""
    return [_fits(result), _speed(result), _limit(result)]


def _fits(result: FitResult) -> str:
    used, host = result.search.best.used_bytes, result.outcome.pinned_bytes
    memory = f"GPU memory {format_gib(used)} of {format_gib(result.budget_bytes)} GiB"
    memory += f", host memory {format_gib(host)} GiB" if host else ""
    if result.fits:
        return f"fits: {memory}"
    return f"does not fit: {_shortage(result)}; the nearest plan takes {memory}"


def _shortage(result: FitResult) -> str:
    short = result.outcome.out_of_memory
    assert short is not None
    missing = format_bytes(result.search.best.shortfall_bytes)
    return f"{missing} of {'host' if short.failure.memory == 'host' else 'GPU'} memory are missing"


def _speed(result: FitResult) -> str:
    counters, plain = result.result.counters, result.plain
    tokens = counters["tokens_per_s"] or counters["samples_per_s"]
    unit = "tokens" if counters["tokens_per_s"] else "samples"
    longer = counters["time_ms"] / plain.counters["time_ms"] - 1
    than = "without a plan" if plain.counters["fits"] else "without a plan on enough memory"
    slower = f"{format_whole_percent(longer)} slower than" if longer > _VISIBLE else "as fast as"
    slower = f"{format_significant(1 + longer)} times as long as" if longer > 1 else slower
    return (
        f"{format_significant(counters['time_ms'])} ms an iteration, {tokens:,.0f} {unit} per s: {slower} {than} "
        f"({format_significant(plain.counters['time_ms'])} ms, {format_gib(result.search.plain.used_bytes)} GiB)"
    )


def _limit(result: FitResult) -> str:
    if not result.fits:
        return f"what would fit: {_would_fit(result)}"
    outcome, total = result.outcome, result.outcome.time_ps
    waits = {_CAUSES.get(cause, cause): ps for cause, ps in outcome.stall_ps_by_cause().items()}
    recomputed = outcome.pass_ps("recompute")
    if recomputed:
        waits["recomputation"] = recomputed
    largest = max(waits, key=lambda name: waits[name], default="")
    if largest and waits[largest] > _MATTERS * total:
        return f"next limit: {largest}, {format_time(waits[largest])} of {format_time(total)}"
    return "next limit: the GPU's computations" + (f"; {largest} {format_time(waits[largest])}" if largest else "")


def _would_fit(result: FitResult) -> str:
    short = result.outcome.out_of_memory
    assert short is not None
    if short.failure.memory == "host":
        needed = result.outcome.pinned_bytes
        return f"{format_gib(needed)} GiB of pinned host memory, or fewer weights on this GPU (--fsdp, --lora)"
    return f"a GPU with {format_gib(result.search.best.used_bytes)} GiB, or a smaller batch or sequence"
