"""Check the laws on many random machines and traces: `python -m tests.laws [SEEDS]` (default: 10,000).

Prints what breaks a law and is not listed, and the list of non-monotonic resources as the run broken it.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from multiprocessing import Pool

from tests.laws.laws import Violation, unexplained, violations

CHUNK = 20


def check(seed: int) -> list[Violation]:
    return list(violations(seed))


def main(seeds: int) -> int:
    broken: list[Violation] = []
    with Pool(os.cpu_count()) as pool:
        for number, some in enumerate(pool.imap(check, range(seeds), CHUNK), 1):
            broken += some
            if number % 1000 == 0:
                print(f"{number} machines and traces", file=sys.stderr, flush=True)
    groups: dict[tuple[str, str], list[Violation]] = defaultdict(list)
    for one in broken:
        if one.law == "better":
            groups[one.about, one.cause].append(one)
    for (key, cause), some in sorted(groups.items()):
        smallest = min(some, key=lambda one: (one.instructions, one.seed))
        largest = max(one.slowdown for one in some)
        print(f"{key} ({cause}): {len(some)} of about {2 * seeds // 21}, at most {100 * largest:.2f} %")
        print(f"  smallest: seed {smallest.seed}, {smallest.instructions} memory instructions")
    bad = unexplained(broken)
    for one in bad:
        print(f"NOT LISTED: {one}")
    print(f"{seeds} machines and traces; {len(bad)} violations that are not listed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
