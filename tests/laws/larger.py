"""How often a better resource slows a run, in both orders: ``python -m tests.laws.larger [SEEDS]``, two pairs each.

Traces have 1 to 16 thread blocks of 4 to 60 instructions a warp. Schemes are those without page faults, which the order
of arrival refuses.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

from buddysim.base.errors import BuddysimError
from tests.laws.laws import BETTER, SCHEMES, TOLERANCE, _replaying, law_case
from tests.replay.random_cases import Case


class Pair(NamedTuple):
    """A machine and a better one.

    Attributes
    ----------
    slowdown : of the better one, less 1
    """

    seed: int
    key: str
    exact_order: bool
    slowdown: float


def larger_case(seed: int) -> tuple[Case, random.Random]:
    """The case of a seed."""
    return law_case(seed, [scheme for scheme in SCHEMES if scheme != "unified-memory"], larger=True)


def pairs(seed: int) -> list[Pair]:
    """Two resources of a seed's case, in both orders; none that the engine refuses."""
    case, draw = larger_case(seed)
    keys = draw.sample([key for key in BETTER if not key.startswith("um.")], 2)
    compared = []
    with tempfile.TemporaryDirectory() as folder:
        for exact_order in (False, True):
            case.options["exact_order"] = exact_order
            with _replaying(case, Path(folder) / f"{exact_order}.bin") as run:
                for key in keys:
                    try:
                        before, after = (run(case.scheme, changed)["time_ps"] for changed in ({}, {"better": key}))
                    except BuddysimError:
                        continue
                    compared.append(Pair(seed, key, exact_order, after / max(1, before) - 1))
    return compared


def summary(every: list[Pair], exact_order: bool) -> str:
    """Return how many pairs are slower, and by how much."""
    some = [one for one in every if one.exact_order == exact_order]
    slower = [one for one in some if one.slowdown > TOLERANCE]
    worst: Any = max(some, key=lambda one: one.slowdown)
    keys = ", ".join(f"{key} {n}" for key, n in Counter(one.key for one in slower).most_common())
    beyond = {limit: sum(one.slowdown > limit for one in some) for limit in (0.01, 0.03)}
    return (
        f"order of {'arrival' if exact_order else 'issue'}: {len(slower)} of {len(some)} pairs slower by over "
        f"{TOLERANCE:.1%} ({len(slower) / len(some):.2%}), {beyond[0.01]} by over 1 %, {beyond[0.03]} by over 3 %; "
        f"worst {worst.slowdown:.1%} ({worst.key}, seed {worst.seed}): {keys}"
    )


def main(seeds: int) -> None:
    with Pool(os.cpu_count()) as pool:
        every = [pair for some in pool.imap(pairs, range(seeds), 10) for pair in some]
    print(summary(every, False), summary(every, True), sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2500)
