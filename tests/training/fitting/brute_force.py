"""``python -m tests.training.fitting.brute_force [NETWORKS]``: searches against every plan of random networks."""

from __future__ import annotations

import sys

from tests.training.fitting.test_search import check

#: Groups and choices of alternate networks: 4,096 plans each.
KINDS = ((12, 2), (6, 4))


def main(networks: int) -> None:
    """Print for each network by how much the answer is slower than the best plan."""
    equal = 0
    for seed in range(networks):
        parts, choices = KINDS[seed % 2]
        answer, best, tried = check(seed, parts, choices)
        equal += answer == best
        print(
            f"network {seed}: {parts} groups of {choices}: {100 * (answer / best - 1):.2f} %, {tried} plans", flush=True
        )
    print(f"{equal} of {networks} answers are the best plan")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
