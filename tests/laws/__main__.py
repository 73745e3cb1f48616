"""Check the laws on many random machines and traces: `python -m tests.laws [SEEDS]` (default: 10,000).

Prints what breaks a law and is not listed, and the list of non-monotonic resources of this run.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from math import ceil
from multiprocessing import Pool

from tests.laws.laws import BETTER, Violation, unexplained, violations

CHUNK = 20


def check(seed: int) -> list[Violation]:
    return list(violations(seed))


def listed(broken: list[Violation], pairs: int) -> str:
    """The text of `non_monotonic.toml`; `pairs`: of a machine and a better one, about, for each resource."""
    groups: dict[tuple[str, str], list[Violation]] = defaultdict(list)
    for one in broken:
        if one.law == "better":
            groups[one.about, one.cause].append(one)
    lines = [
        "# Resources whose improvement slowed a run by more than 0.1 %, by cause (`CAUSES` of laws.py).",
        f"# About {pairs} pairs of machines for each resource. Written by `python -m tests.laws`.",
        "# seed: of the example with the fewest memory instructions; largest: slowdown, less 1; runs: how many.",
    ]
    for (key, cause), some in sorted(groups.items()):
        smallest = min(some, key=lambda one: (one.instructions, one.seed))
        largest = ceil(1e5 * max(one.slowdown for one in some)) / 1e5
        lines += ["", f'["{key}".{cause}]', f"seed = {smallest.seed}", f"instructions = {smallest.instructions}"]
        lines += [f"largest = {largest:.5f}", f"runs = {len(some)}"]
    return "\n".join(lines) + "\n"


def main(seeds: int) -> int:
    broken: list[Violation] = []
    with Pool(os.cpu_count()) as pool:
        for number, some in enumerate(pool.imap(check, range(seeds), CHUNK), 1):
            broken += some
            if number % 1000 == 0:
                print(f"{number} machines and traces", file=sys.stderr, flush=True)
    print(listed(broken, 2 * seeds // len(BETTER)))
    bad = unexplained(broken)
    for one in bad:
        print(f"NOT LISTED: {one}")
    print(f"{seeds} machines and traces; {len(bad)} violations that are not listed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
