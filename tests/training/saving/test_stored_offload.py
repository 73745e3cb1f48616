"""Results that recomputed blocks store, on the host for a while: which, how long, and what that leaves."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.records import AllocationEvent, Event, TracedOperation
from buddysim.training.autograd.tape import Tape
from buddysim.training.driver import simulate
from buddysim.training.options.checkpoint_rule import CheckpointRule, StoredOperators
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.saving.largest_results import with_offloaded_results
from tests.training.host.test_recorded_host import CONFIG, named

#: bf16 of 2 x 32 tokens; blocks store q, k, v, o, gate, up, down.
TOKENS, BLOCKS, PRODUCTS = 64, 3, 7
SMALL, MIDDLE, LARGE = 2 * TOKENS * 32, 2 * TOKENS * 64, 2 * TOKENS * 128
STORED = StoredOperators(("mm",))


def rule(budget: int, defer: int = 1, ahead: int = 1) -> CheckpointRule:
    """Every block recomputed, but for its products."""
    network: Any = network_from_config(CONFIG, sequence=32).at(2, "adamw")
    return with_offloaded_results(CheckpointRule(0, BLOCKS - 1, 1, STORED), network.tape, budget, defer, ahead)


def recorded(one: CheckpointRule) -> Tape:
    """The step."""
    tape: Tape = network_from_config(CONFIG, sequence=32)._recorded(2, "adamw", SavingRules((one,))).tape
    return tape


def results(budget: int) -> tuple[tuple[int, int], ...]:
    offloaded = rule(budget).offloaded
    assert offloaded is not None
    return offloaded.results


def test_the_largest_come_first_and_the_last_block_stays() -> None:
    """Gate and up of two blocks, then those of middle size, then k and v, which still fit."""
    assert results(3 * LARGE) == ((0, 4), (0, 5), (1, 4))
    assert results(4 * LARGE + MIDDLE) == ((0, 0), (0, 4), (0, 5), (1, 4), (1, 5))
    assert results(4 * LARGE + 6 * MIDDLE + SMALL) == tuple(
        sorted([(block, number) for block in (0, 1) for number in (0, 3, 4, 5, 6)] + [(0, 1)])
    )
    assert len(results(1 << 40)) == 2 * PRODUCTS
    assert results(SMALL - 1) == ()


def test_without_a_budget_it_is_selective_recomputation() -> None:
    plain, none = recorded(CheckpointRule(0, BLOCKS - 1, 1, STORED)), recorded(rule(0))
    assert list(map(described, plain.events)) == list(map(described, none.events))


def described(event: Event) -> tuple[str, object]:
    """What tells an event from others."""
    return type(event).__name__, event.name if isinstance(event, TracedOperation) else event.bytes


def test_every_result_goes_once_and_comes_back_once() -> None:
    tape = recorded(rule(3 * LARGE))
    out, back = named(tape, "offload"), named(tape, "prefetch")
    assert [one.copy.bytes for one in out] == [one.copy.bytes for one in back] == [LARGE] * 3  # type: ignore[union-attr]
    assert {one.copy.buffer for one in out} == {one.copy.buffer for one in back}  # type: ignore[union-attr]
    assert [one.stream for one in (*out, *back)] == ["offload"] * 3 + ["prefetch"] * 3
    assert all(one.phase == "backward" for one in back)


def test_a_copy_follows_its_product_and_memory_is_given_back_a_block_later() -> None:
    tape = recorded(rule(LARGE))
    (copy,) = named(tape, "offload")
    (before,) = copy.after
    product = tape.operations[before]
    assert (product.name, product.writes[0].storage) == ("mm", copy.reads[0].storage)
    (wait,) = named(tape, "wait")
    assert wait.after == (copy.index,)
    behind = next(one for one in tape.operations[wait.index :] if one.stream == "compute" and one.name != "wait")
    assert "layers.0" in product.scope
    assert "layers.2" in behind.scope
    freed = tape.storages[product.writes[0].storage].freed
    assert freed == tape.events.index(wait) + 1


@pytest.mark.parametrize(("ahead", "block"), [(0, 0), (1, 1), (2, 2)])
def test_a_result_is_fetched_before_the_backward_pass_of_a_block_ahead(ahead: int, block: int) -> None:
    tape = recorded(rule(LARGE, ahead=ahead))
    (fetched,) = named(tape, "prefetch")
    following = next(one for one in tape.operations[fetched.index + 1 :] if one.stream == "compute")
    assert f"layers.{block}" in following.scope
    readers = [one.index for one in tape.operations if fetched.writes[0].storage in [r.storage for r in one.reads]]
    assert min(readers) > fetched.index


def test_the_peak_of_what_is_stored_falls_by_what_is_on_the_host() -> None:
    plain, less = recorded(rule(0)), recorded(rule(1 << 40, defer=0, ahead=0))

    def live_at_loss(tape: Tape) -> int:
        live = 0
        for event in tape.events:
            if isinstance(event, TracedOperation):
                if event.phase == "backward":
                    return live
            elif isinstance(event, AllocationEvent):
                live += event.bytes
            else:
                live -= event.bytes
        return live

    assert live_at_loss(plain) - live_at_loss(less) == 2 * (3 * MIDDLE + 2 * LARGE + 2 * SMALL)


def test_options() -> None:
    network = network_from_config(CONFIG, sequence=32)
    with pytest.raises(BuddysimError, match="offload_results: no block stores results: expected checkpoint selective"):
        simulate(network, 2, "h100-sxm", "offload-activations", checkpoint="block", offload_results=1.0)
    with pytest.raises(BuddysimError, match="offload_defer -1: expected 0"):
        simulate(
            network, 2, "h100-sxm", "offload-activations", checkpoint="operators:mm", offload_results=1.0,
            offload_defer=-1,
        )  # fmt: skip
    counters = simulate(
        network, 2, "h100-sxm", "offload-activations", checkpoint="operators:mm", offload_results=3 * LARGE / (1 << 30)
    ).counters
    assert counters["offload.bytes"] == 3 * LARGE
