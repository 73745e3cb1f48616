"""Contracts of the SM's policies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from buddysim.contracts.contract import Contract
from buddysim.contracts.replayed import ReplayedSubject
from buddysim.contracts.trials import picks

_CASES = 2000
_MAX_WARPS = 64
_LATEST_PS = 5000

Case = tuple[list[int], int | None, int]


def _cases() -> list[Case]:
    """Schedulers of 1 to 64 warps, at a time when at least one can issue."""
    draw = np.random.default_rng(1)
    cases: list[Case] = []
    for _ in range(_CASES):
        ready = draw.integers(0, _LATEST_PS, draw.integers(1, _MAX_WARPS + 1)).tolist()
        last_issuer = int(draw.integers(-1, len(ready)))
        cases.append((ready, None if last_issuer < 0 else last_issuer, int(draw.integers(min(ready), _LATEST_PS + 1))))
    return cases


def _impossible(subject: ReplayedSubject) -> Iterator[str]:
    cases = _cases()
    for (ready, _, now), warp in zip(cases, picks(subject.member(), cases), strict=True):
        if warp is None:
            yield f"of {len(ready)} warps at {now} ps: it changed the scheduler"
        elif not 0 <= warp < len(ready):
            yield f"of {len(ready)} warps at {now} ps: it picked number {warp}"
        elif ready[warp] > now:
            yield f"of {len(ready)} warps at {now} ps: it picked number {warp}, which can issue at {ready[warp]} ps"


CONTRACTS = {
    "warp scheduler": (Contract("it picks a warp that can issue, and changes nothing", _impossible, safe=True),)
}
