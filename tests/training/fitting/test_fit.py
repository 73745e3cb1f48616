"""`buddysim.fit` on a small model: its plan as a file, its laws, what it says where nothing fits."""

from __future__ import annotations

from pathlib import Path

import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.report.fit_screen import fit_parts
from buddysim.training.driver import simulate
from buddysim.training.fitting.plan_space import SINGLE_SCHEMES
from buddysim.training.request import TrainingRequest
from buddysim.training.schemes import required_options
from tests.training.fitting.small_model import (
    BUDGET,
    TWO_BLOCKS_BUDGET,
    answer,
    answer_for_two_blocks,
    small_model,
)

MIB = 2**20


def test_the_answer_fits_and_is_between_bound_and_single_schemes() -> None:
    result = answer_for_two_blocks()
    assert result.fits
    assert result.search.best.used_bytes <= TWO_BLOCKS_BUDGET
    assert result.search.bounds.time_ps is not None
    assert result.search.bounds.time_ps <= result.outcome.time_ps
    assert result.search.bounds.memory_bytes <= min(one.used_bytes for one in result.search.tried)
    fitting = [one.time_ps for one in result.search.singles.values() if one.fits]
    assert result.outcome.time_ps <= min(fitting)
    assert not result.plain.counters["fits"]
    assert set(result.search.singles) == {name for name in SINGLE_SCHEMES if not required_options(name)}


@pytest.mark.slow
def test_train_reads_the_plan_and_says_the_same(tmp_path: Path) -> None:
    result, path = answer(), tmp_path / "plan.toml"
    path.write_text(result.plan_toml(), encoding="utf-8")
    again = simulate(small_model(), 8, "h100-sxm", "plan", plan=str(path), memory_bytes=BUDGET)
    assert again.counters == result.result.counters
    assert result.result.outcome.network.options == again.outcome.network.options


@pytest.mark.slow
def test_enough_memory_needs_no_plan() -> None:
    result = answer(4000 * MIB)
    assert result.outcome.time_ps == result.plain.outcome.time_ps
    assert result.excess is not None
    assert result.excess < 1e-5
    assert [row.choice for row in result.rows] in (["keep"], [])


@pytest.mark.slow
def test_the_same_question_has_the_same_answer() -> None:
    first, again = answer(), buddysim.fit(small_model(), "h100-sxm", BUDGET, batch=8)
    assert first.to_dict() == again.to_dict()


@pytest.mark.slow
def test_the_smallest_memory_within_a_slowdown() -> None:
    fastest = answer(4000 * MIB).outcome.time_ps
    result = answer(4000 * MIB, slowdown=0.1)
    assert result.outcome.time_ps <= 1.1 * fastest
    assert result.search.best.used_bytes < answer(4000 * MIB).search.best.used_bytes
    more = answer(4000 * MIB, slowdown=0.5)
    assert more.search.best.used_bytes <= result.search.best.used_bytes


@pytest.mark.slow
def test_lossy_choices_where_they_are_allowed_alone() -> None:
    names = [choice.name for choice in answer().space.choices]
    assert not any("compress" in name for name in names)
    result = answer(allow=("compress-8",))
    assert "compress to 8 bits" in [choice.name for choice in result.space.choices]
    assert result.outcome.time_ps <= answer().outcome.time_ps
    with pytest.raises(BuddysimError, match=r"allow 'compress-9': expected some of .* \(nearest: compress-8\)"):
        answer(allow=("compress-9",))
    with pytest.raises(BuddysimError, match="expected one number of bits"):
        answer(allow=("compress-8", "compress-16"))


@pytest.mark.slow
def test_where_nothing_fits_the_answer_says_by_how_much() -> None:
    result = answer(600 * MIB)
    assert not result.fits
    assert result.excess is None
    short = result.search.best.shortfall_bytes
    assert 0 < short == min(one.shortfall_bytes for one in result.search.tried)


@pytest.mark.slow
@pytest.mark.parametrize("last", [2, 14])
def test_an_interrupted_search_has_the_best_so_far(last: int) -> None:
    def interrupt(count: int, one: object) -> None:
        if count > last:
            raise KeyboardInterrupt

    result = buddysim.fit(small_model(), "h100-sxm", BUDGET, batch=8, progress=interrupt)
    assert result.search.stopped
    assert len(result.search.tried) == last + 1
    assert (result.search.bounds.time_ps is None) == (last == 2)  # single schemes weren't all simulated
    assert result.fits or last == 2
    assert "stopped: a longer search may find a better one" in "".join(map(str, fit_parts(result)))


def test_the_front_has_no_plan_that_another_beats() -> None:
    front = answer_for_two_blocks().front()
    assert len(front) > 3
    assert [one.time_ps for one in front] == sorted({one.time_ps for one in front})
    assert [one.used_bytes for one in front] == sorted({one.used_bytes for one in front}, reverse=True)


@pytest.mark.slow
def test_a_larger_budget_never_makes_it_slower() -> None:
    times = [answer(budget * MIB).outcome.time_ps for budget in (1000, 1060, 1140, 4000)]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) > 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "slower", "faster"),
    [("training.link", ("pcie3",), ("nvlink-c2c",)), ("training.max_pinned_memory", ("1 MiB", "64 MiB"), ())],
)
def test_a_faster_link_and_more_host_memory_never_make_it_slower(
    key: str, slower: tuple[str, ...], faster: tuple[str, ...]
) -> None:
    machine = TrainingRequest(small_model(), 8, "h100-sxm").load_machine()

    def time_with(value: str) -> int:
        changed = machine.with_overrides({key: value}, "--set")
        return buddysim.fit(small_model(), changed, BUDGET, batch=8).outcome.time_ps

    spent = [*map(time_with, slower), answer().outcome.time_ps, *map(time_with, faster)]
    assert spent == sorted(spent, reverse=True)
