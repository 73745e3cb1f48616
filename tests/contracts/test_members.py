"""Everything that is registered keeps the contracts of its kind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from buddysim.base.kinds import HOMES, registry
from buddysim.contracts import held
from buddysim.contracts.held import contracts_of, subject_of
from buddysim.contracts.training_scheme import is_tried

REPLAYED = [kind for kind, home in HOMES.items() if home.startswith("buddysim.replay.")]


def broken(
    kind: str, names: Iterable[str], folder: Path, promises: tuple[str, ...] = ("",)
) -> dict[tuple[str, str], list[str]]:
    """The breaches of members, by member and promise, of the contracts whose promises begin so."""
    return {
        (name, contract.promise): breaches
        for name in names
        for contract in contracts_of(kind)
        if contract.promise.startswith(promises)
        for breaches in [contract.tried(subject_of(kind, name, folder))]
        if breaches
    }


def test_every_kind_has_contracts() -> None:
    assert set(held.HOMES) == set(HOMES)
    assert [kind for kind in HOMES if not contracts_of(kind)] == []
    promises = [contract.promise for kind in HOMES for contract in set(contracts_of(kind))]
    assert [promise for promise in promises if not 10 < len(promise) < 100 or promise[0].isupper()] == []


#: Kinds with members whose trials take long, and their contracts that don't; the others are tried slowly.
QUICK = {
    "figure": ("its title is a line, its file and options are named", "a file that is not its own is refused"),
    "architecture": ("it names a class", "every weight gets a gradient", "an iteration leaves"),
    "synthetic workload": ("its name is a word", "a wrong value", "its trace is sound"),
    "workload": ("its summary is a line", "what it states before a run"),
    "training scheme": ("it has a name", "it plans each layer", "an iteration that fits", "an iteration takes from"),
    "network": ("its network has its name", "two networks made alike", "a setting's default"),
}
#: Figures of minutes: they search networks of some thousand layers, flip every decision, or search for launches.
LONG_FIGURES = ("gist-fig16", "cswap-fig6", "cswap-fig10", "cswap-fig11", "cswap-fig12")


@pytest.mark.parametrize("kind", [kind for kind in HOMES if kind not in REPLAYED])
def test_members_keep_their_contracts(kind: str, tmp_path: Path) -> None:
    names = [name for name, member in registry(kind).items() if not getattr(member, "recorded", False)]
    assert broken(kind, names, tmp_path, QUICK.get(kind, ("",))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["architecture", "synthetic workload", "training scheme", "network"])
def test_members_keep_the_contracts_that_take_long(kind: str, tmp_path: Path) -> None:
    assert broken(kind, registry(kind).names(), tmp_path) == {}


def test_schemes_are_tried_but_for_that_of_a_file() -> None:
    untried = [
        name
        for name in registry("training scheme").names()
        if not is_tried(subject_of("training scheme", name, Path()))
    ]
    assert untried == ["plan"]  # its decisions are a file of the user


@pytest.mark.slow
def test_figures_keep_those_that_draw(tmp_path: Path) -> None:
    """Runs of workloads: tests/workloads/test_small.py."""
    names = [name for name in registry("figure").names() if name not in LONG_FIGURES]
    assert broken("figure", names, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPLAYED)
def test_parts_of_a_replay_keep_them_in_a_replay(kind: str, tmp_path: Path) -> None:
    """Contracts of policies alone are quick: `test_replayed`."""
    assert broken(kind, registry(kind).names(), tmp_path) == {}
