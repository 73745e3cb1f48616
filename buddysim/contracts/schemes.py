"""Contracts of replay schemes and of their policies."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.contracts.contract import Contract
from buddysim.contracts.replayed import SCHEME, ReplayedSubject


def _not_counted(subject: ReplayedSubject) -> Iterator[str]:
    for counter in subject.member.COUNTERS.keys() - subject.results[0].keys():
        yield f"{counter}: declared, not counted"


CONTRACTS = {
    SCHEME: (Contract("counters that it declares are counted", _not_counted),),
    # The metadata cache checks each line that is fetched ahead (`fetch_ahead_of_use`).
    "metadata prefetcher": (),
}
