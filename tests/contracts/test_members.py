"""Everything that is registered keeps the contracts of its kind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from buddysim.base.kinds import HOMES, registry
from buddysim.contracts import held
from buddysim.contracts.held import breaches_of, contracts_of, subject_of

REPLAYED = [kind for kind, home in HOMES.items() if home.startswith("buddysim.replay.")]


def broken(kind: str, names: Iterable[str], folder: Path) -> dict[tuple[str, str], list[str]]:
    """The breaches of members, by member and promise."""
    return {
        (name, contract.promise): breaches
        for name in names
        for contract, breaches in breaches_of(subject_of(kind, name, folder))
        if breaches
    }


def test_every_kind_has_contracts() -> None:
    assert [kind for kind in held.HOMES if not contracts_of(kind)] == []
    promises = [contract.promise for kind in held.HOMES for contract in set(contracts_of(kind))]
    assert [promise for promise in promises if not 10 < len(promise) < 100 or promise[0].isupper()] == []


@pytest.mark.parametrize("kind", [kind for kind in held.HOMES if kind not in REPLAYED])
def test_members_keep_their_contracts(kind: str, tmp_path: Path) -> None:
    assert broken(kind, registry(kind).names(), tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPLAYED)
def test_parts_of_a_replay_keep_them_in_a_replay(kind: str, tmp_path: Path) -> None:
    """Contracts of policies alone are quick: `test_replayed`."""
    assert broken(kind, registry(kind).names(), tmp_path) == {}
