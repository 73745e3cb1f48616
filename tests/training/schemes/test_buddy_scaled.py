"""Trainings scaled by Buddy Compression: larger device memory and longer computations, alone and below vDNN."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.machine.training import TrainingMachine
from buddysim.training import schemes, simulate
from buddysim.training.fitting.fit import fit
from buddysim.training.recorded_step.from_config import ConfigNetwork, network_from_config
from buddysim.training.schemes.buddy_scaled import SUMMARY
from tests.cli.test_train_config import CONFIG


def saved(folder: Path, ratio: float, buddy_ps: int, ideal_ps: int) -> str:
    path = folder / "r.json"
    results = {
        "buddy": {"compression.ratio": ratio, "time_ps": buddy_ps, "provenance": {}},
        "ideal": {"time_ps": ideal_ps, "provenance": {}},
    }
    path.write_text(json.dumps(results))
    return str(path)


def test_ratio_and_slowdown_are_those_of_the_replay(tmp_path: Path) -> None:
    base = simulate("vgg16", 96, "titan-xp", "baseline-p").counters
    buddy = simulate("vgg16", 96, "titan-xp", "buddy-scaled", buddy_result=saved(tmp_path, 1.5, 110, 100))
    assert buddy.counters["memory.capacity_bytes"] == int(base["memory.capacity_bytes"] * 1.5)
    assert buddy.counters["memory.peak_bytes"] == base["memory.peak_bytes"]
    assert buddy.counters["time_ms"] == pytest.approx(1.1 * base["time_ms"], rel=1e-6)
    assert "Device memory holds 1.5x" in buddy.assumptions["buddy"]


def test_network_fits_with_a_larger_ratio() -> None:
    assert not simulate("vgg16", 128, "titan-xp", "baseline-p").counters["fits"]
    assert not simulate("vgg16", 128, "titan-xp", "buddy-scaled", buddy_ratio=1.0).counters["fits"]
    assert simulate("vgg16", 128, "titan-xp", "buddy-scaled", buddy_ratio=2.0).counters["fits"]


@pytest.fixture(scope="module")
def model() -> ConfigNetwork:
    return network_from_config(CONFIG, sequence=64)


CONTEXT = TrainingMachine.load("h100-sxm").bytes_outside_allocator()


def test_recorded_network_runs_as_eager_in_a_larger_memory(model: ConfigNetwork, tmp_path: Path) -> None:
    base, buddy, twice = (
        simulate(model, 2, "h100-sxm", scheme, **extra).counters
        for scheme, extra in (
            ("eager", {}),
            ("buddy-scaled", {"buddy_result": saved(tmp_path, 1.5, 500, 1)}),
            ("buddy-scaled", {"buddy_ratio": 1.5, "buddy_slowdown": 999.0}),
        )
    )
    context = base["memory.by_kind"]["context"]
    larger = buddy["memory.capacity_bytes"] - context
    assert larger == int(1.5 * (base["memory.capacity_bytes"] - context))
    assert buddy["memory.peak_bytes"] == base["memory.peak_bytes"]
    assert buddy["memory.by_kind"]["context"] == context > 0
    # As slow as this, the GPU waits for a few launches at the beginning; base is as long as its launches.
    assert twice["time_ms"] == pytest.approx(2 * buddy["time_ms"], rel=1e-3)
    assert 0 < buddy["time_ms"] / 500 < base["time_ms"]


def test_context_is_not_compressed(model: ConfigNetwork) -> None:
    used = simulate(model, 2, "h100-sxm", "eager").counters
    need = used["memory.peak_reserved_bytes"] + used["memory.by_kind"]["context"]
    fits = {
        size: simulate(model, 2, "h100-sxm", "buddy-scaled", memory_bytes=size, buddy_ratio=2.0).counters["fits"]
        for size in (need // 2, need - used["memory.peak_reserved_bytes"] // 2)
    }
    assert list(fits.values()) == [False, True]


def test_scaled_policies_of_a_recorded_network_that_move_nothing_are_eager_scaled(model: ConfigNetwork) -> None:
    one, other = (
        simulate(model, 2, "h100-sxm", scheme, buddy_ratio=1.5, buddy_slowdown=0.2).counters
        for scheme in ("buddy-scaled", "buddy-scaled-vdnn-conv-p")
    )
    assert one["time_ms"] == other["time_ms"]
    assert one["memory.capacity_bytes"] == other["memory.capacity_bytes"]


def test_fit_has_it_among_single_schemes_where_a_ratio_is_given(model: ConfigNetwork) -> None:
    """Without a ratio there is none: `tests/training/fitting/test_fit.py`."""
    ratio = {"buddy_ratio": 2.0, "buddy_slowdown": 0.1}
    given = fit(model, "h100-sxm", 60 * 10**6 + CONTEXT, batch=2, tries=0, **ratio).search.singles
    assert given["buddy-scaled"].used_bytes - CONTEXT == pytest.approx((given["eager"].used_bytes - CONTEXT) / 2, abs=1)
    assert given["buddy-scaled"].time_ps > given["eager"].time_ps


def test_vdnn_offloads_less_with_a_larger_ratio() -> None:
    alone = simulate("vgg16", 192, "titan-xp", "vdnn-dyn").counters
    both = simulate("vgg16", 192, "titan-xp", "buddy-scaled-vdnn-dyn", buddy_ratio=2.0, buddy_slowdown=0.0).counters
    assert alone["offload.bytes"] > both["offload.bytes"]
    assert both["fits"]
    assert both["time_ms"] < alone["time_ms"]


def test_ratio_1_without_slowdown_changes_nothing() -> None:
    for name in SUMMARY:
        below = name.removeprefix("buddy-scaled-") if name != "buddy-scaled" else "baseline-p"
        scaled = simulate("alexnet", 64, "titan-xp", name, buddy_ratio=1.0).counters
        unscaled = simulate("alexnet", 64, "titan-xp", below).counters
        assert scaled["time_ms"] == unscaled["time_ms"], name
        assert scaled["memory.peak_bytes"] == unscaled["memory.peak_bytes"], name


@pytest.mark.parametrize("options", [{}, {"buddy_slowdown": 0.02}])
@pytest.mark.parametrize("name", SUMMARY)
def test_scheme_without_result_or_ratio_is_an_error(name: str, options: dict[str, float]) -> None:
    with pytest.raises(BuddysimError, match=rf"scheme {name}: .*buddy_result \(--buddy-result\) or buddy_ratio"):
        simulate("alexnet", 32, "titan-xp", name, **options)


def test_command_line_names_the_two_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "alexnet", "--scheme", "buddy-scaled"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert "--buddy-result" in shown.err
    assert "--buddy-ratio" in shown.err


def with_a_ratio() -> set[str]:
    """All schemes but the one that reads a file."""
    return set(schemes.REGISTRY.names()) - {"plan"}


def test_all_schemes_include_the_scaled_ones_only_with_a_ratio() -> None:
    without = schemes.runnable_schemes()
    assert not set(without) & set(SUMMARY)
    assert set(without) | set(SUMMARY) == with_a_ratio()
    for option in ("buddy_ratio", "buddy_result"):
        assert set(schemes.runnable_schemes([option])) == with_a_ratio()
    assert schemes.runnable_schemes(["buddy_slowdown"]) == without


def test_scheme_all_on_the_command_line_leaves_the_scaled_ones_out(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    command = ["train", "alexnet-cifar10", "--batch", "4", "--scheme", "all", "--json", str(path)]
    assert main(command) == 0
    assert sorted(json.loads(path.read_text())) == sorted(schemes.runnable_schemes())
    assert main([*command, "--buddy-ratio", "1.5"]) == 0
    assert set(json.loads(path.read_text())) == with_a_ratio()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"buddy_ratio": 5.0}, "expected 1 to 4"),
        ({"buddy_ratio": 0.5}, "expected 1 to 4"),
        ({"buddy_ratio": float("nan")}, "expected 1 to 4"),
        ({"buddy_ratio": 1.0, "buddy_slowdown": -1.0}, "expected a fraction, for example 0.02"),
        ({"buddy_result": "no-such.json"}, "no-such.json"),
    ],
)
def test_wrong_option_is_an_error(options: dict[str, float], expected: str) -> None:
    with pytest.raises(BuddysimError, match=expected):
        simulate("alexnet", 32, "titan-xp", "buddy-scaled", **options)


def test_result_without_both_schemes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    for content, message in (
        ("[]", "not a result as 'run TRACE --scheme ideal,buddy --json' writes it"),
        ('{"buddy": {"time_ps": 3, "provenance": {}}}', "r.json: ideal is missing"),
        (
            '{"buddy": {"time_ps": 3, "provenance": {}}, "ideal": {"time_ps": 0, "provenance": {}}}',
            "more than 0, got 0",
        ),
    ):
        path.write_text(content)
        with pytest.raises(BuddysimError, match=message):
            simulate("alexnet", 32, "titan-xp", "buddy-scaled", buddy_result=str(path))
