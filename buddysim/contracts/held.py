"""Holds members of every kind to the contracts of their kind."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from buddysim.base import kinds
from buddysim.contracts.contract import Contract, Subject

_REPLAY = "buddysim.replay."

#: The module of this folder that has a kind's contracts; imported at first use.
HOMES = {
    "compressor": "compressor",
    "importer": "importer",
    "synthetic workload": "synthetic_workload",
    "workload": "workload",
    "replay scheme": "schemes",
    "warp scheduler": "sm",
    "L1 banking": "l1",
    "slice hash": "l2",
    "DRAM model": "dram",
    "DRAM refresh": "dram",
    "link protocol": "link",
    "write drain": "dram",
    "metadata prefetcher": "schemes",
    "training scheme": "training_scheme",
    "recipe": "recipe",
    "optimizer": "optimizer",
    "network": "network",
    "layer kind": "layer_kind",
    "architecture": "architecture",
    "analysis": "analysis",
    "figure": "figure",
    "command": "command",
}


def contracts_of(kind: str) -> tuple[Contract, ...]:
    """Return the contracts of a kind: its own, then those of all that takes part in a replay."""
    own: tuple[Contract, ...] = import_module(f"buddysim.contracts.{HOMES[kind]}").CONTRACTS[kind]
    if not _is_replayed(kind):
        return own
    from buddysim.contracts.replayed import COMMON

    return (*own, *COMMON)


def subject_of(kind: str, name: str, folder: Path) -> Subject:
    """Return a member of a kind, to be tried in a folder."""
    if not _is_replayed(kind):
        return Subject(kind, name, folder)
    from buddysim.contracts.replayed import replayed_subject

    return replayed_subject(kind, name, folder)


def breaches_of(subject: Subject) -> Iterator[tuple[Contract, list[str]]]:
    """Return each contract that can be tried with its breaches; after one of a `safe` contract, no further is tried."""
    for contract in contracts_of(subject.kind):
        if contract.hindrance(subject):
            continue
        breaches = contract.tried(subject)
        yield contract, breaches
        if breaches and contract.safe:
            return


def untried_of(subject: Subject) -> Iterator[tuple[Contract, str]]:
    """Return each contract that this installation can't try, with the cause."""
    for contract in contracts_of(subject.kind):
        cause = contract.hindrance(subject)
        if cause:
            yield contract, cause


def _is_replayed(kind: str) -> bool:
    return kinds.HOMES[kind].startswith(_REPLAY)
