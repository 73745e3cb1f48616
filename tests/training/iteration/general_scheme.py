"""Training schemes that each use one feature of iteration programs; `test_general` loads them as a plug-in."""

from __future__ import annotations

from dataclasses import replace

from buddysim.base.option import values
from buddysim.training.contents.activation_options import OPTIONS as CONTENTS_OPTIONS
from buddysim.training.iteration.allocators import LiveSetCounter, StaticGroups
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.stash import Encoding, Offload, Stash
from buddysim.training.schemes import _algorithms

MS = 10**9
CODE = Encoding(250_000, MS // 4, MS // 2)
OPTIONS = {"epoch": CONTENTS_OPTIONS["epoch"]}


def _encoded(plan: Plan, options: TrainingOptions) -> Plan:
    return replace(plan, stash={owner: Stash(CODE) for owner in (0, 1, 2)})


def _read_encoded(plan: Plan, options: TrainingOptions) -> Plan:
    return replace(plan, stash={owner: Stash(CODE, decode_before_use=False) for owner in (0, 1, 2)})


def _encoded_and_moved(plan: Plan, options: TrainingOptions) -> Plan:
    return replace(plan, stash={owner: Stash(CODE, offload=Offload()) for owner in (0, 1, 2)})


def _one_tensor(plan: Plan, options: TrainingOptions) -> Plan:
    return replace(plan, stash={0: Stash(CODE), 1: Stash(offload=Offload())})


def _awaited_later(plan: Plan, options: TrainingOptions) -> Plan:
    return replace(plan, stash={0: Stash(offload=Offload(offload_deadline=3, prefetch_launch=3))})


def _by_the_host(plan: Plan, options: TrainingOptions) -> Plan:
    host = Encoding(250_000, 3 * MS, 3 * MS // 2)
    return replace(plan, stash={0: Stash(offload=Offload(host_encoding=host, host_encoding_deadline=2))})


def _by_epoch(plan: Plan, options: TrainingOptions) -> Plan:
    """The encoding halves with each epoch; it is used from the second epoch on."""
    epoch = values(OPTIONS, options.extra)["epoch"] or 0
    code = replace(CODE, byte_count=int(1_000_000 / 2**epoch))
    return replace(plan, stash={0: Stash(code)} if epoch >= 1 else {})


_CHANGES = {
    "test-plain": lambda plan, options: plan,
    "test-encoded": _encoded,
    "test-read-encoded": _read_encoded,
    "test-encoded-moved": _encoded_and_moved,
    "test-one-tensor": _one_tensor,
    "test-later": _awaited_later,
    "test-host": _by_the_host,
    "test-two-steps": lambda plan, options: replace(plan, separate_backward=frozenset({1, 2, 3})),
    "test-not-in-place": lambda plan, options: replace(plan, in_place=frozenset()),
    "test-groups": lambda plan, options: replace(plan, allocator=StaticGroups()),
    "test-own-groups": lambda plan, options: replace(
        _encoded(plan, options), allocator=StaticGroups(stashed_in_groups=False)
    ),
    "test-live-set": lambda plan, options: replace(plan, allocator=LiveSetCounter()),
    "test-epochs": _by_epoch,
}
SUMMARY = dict.fromkeys(_CHANGES, "for tests")


def plan(network, batch, machine, cost, name: str, options: TrainingOptions) -> Plan:
    """Return a plan with one change and no other optimization."""
    algorithms = _algorithms.fastest(network, batch, cost)
    return _CHANGES[name](Plan(name, algorithms, prefetch=options.prefetch), options)
