"""Contracts of the link's policies."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.compress import SECTOR_BYTES
from buddysim.contracts.contract import Contract
from buddysim.contracts.replayed import ReplayedSubject
from buddysim.contracts.trials import carried_bytes

#: Payloads in bytes: up to 64 KiB by sectors, and a block of 2 MiB.
_PAYLOADS = [*range(SECTOR_BYTES, 2**16 + 1, SECTOR_BYTES), 2**21]


def _lost_bytes(subject: ReplayedSubject) -> Iterator[str]:
    carried = carried_bytes(subject.numbers, subject.machine.policies(), _PAYLOADS)
    for payload, (read, requests, write, acknowledgements) in zip(_PAYLOADS, carried, strict=True):
        for transfer, bytes_, least in (
            ("read", read, payload),
            ("write", write, payload),
            ("read's requests", requests, 0),
            ("write's acknowledgements", acknowledgements, 0),
        ):
            if bytes_ < least:
                yield f"a {transfer} of {payload} B: {bytes_} B on the link, expected at least {least} B"


CONTRACTS = {"link protocol": (Contract("the link carries at least the payload", _lost_bytes),)}
