"""Contracts of replay schemes and of their policies."""

from __future__ import annotations

from buddysim.contracts.contract import Contract
from buddysim.contracts.replayed import SCHEME

CONTRACTS: dict[str, tuple[Contract, ...]] = {
    # Those of all replays; a run refuses counters that are declared and not counted.
    SCHEME: (),
    # The metadata cache checks each line that is fetched ahead (`fetch_ahead_of_use`).
    "metadata prefetcher": (),
}
