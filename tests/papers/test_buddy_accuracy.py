"""Accuracy by minibatch: bundled trainings match their module's description; conclusions from numbers."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.papers.buddy import batch_accuracy
from buddysim.papers.buddy.buddy_study import BuddyStudy
from buddysim.sweep.cached_results import SavedResults

#: Of three minibatches and seeds, after two epochs: the smallest is lower by more than chance, the largest by chance.
RUNS = {16: [(70, 80), (71, 81), (72, 82)], 64: [(75, 90), (76, 91), (77, 92)], 256: [(89, 89), (89.5, 92), (90, 90)]}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {str(batch): {str(seed): list(run) for seed, run in enumerate(of)} for batch, of in RUNS.items()}
    made: dict[str, Any] = {"network": "n", "data": "d", "training": "t", "runs": runs}
    monkeypatch.setattr(batch_accuracy, "results", lambda: made)
    monkeypatch.setattr(batch_accuracy, "MINIBATCHES", tuple(RUNS))


def test_what_ships_is_what_is_said() -> None:
    made = batch_accuracy.results()
    assert (made["network"], made["data"]) == (batch_accuracy.NETWORK, batch_accuracy.DATA)
    assert {"program", "licence", "training"} <= set(made)
    assert [*made["runs"]] == [*map(str, batch_accuracy.MINIBATCHES)]
    for of_batch in made["runs"].values():
        assert [*of_batch] == [*map(str, batch_accuracy.SEEDS)]
        for run in of_batch.values():
            assert len(run) == batch_accuracy.EPOCHS
            assert 10 < run[-1] < 100


def test_lower_is_what_is_lower_by_more_than_chance(made_up: None) -> None:
    assert batch_accuracy.curve(16) == [(71, 70, 72), (81, 80, 82)]
    assert batch_accuracy.difference_to_best(64) == (0, 0)
    mean, half = batch_accuracy.difference_to_best(256)
    assert mean == pytest.approx((-1 + 1 - 2) / 3)
    assert half > -mean
    assert batch_accuracy.lower() == [16]


def test_findings(made_up: None) -> None:
    study = BuddyStudy(SavedResults())
    assert batch_accuracy.accuracy(study, "buddy-batch-accuracy").value == "16 lower"
    assert batch_accuracy.accuracy(study, "buddy-batch-largest").value == 256
    assert (batch_accuracy.epochs_until_near(64), batch_accuracy.epochs_until_near(16)) == (2, 3)  # three: never
    assert batch_accuracy.accuracy(study, "buddy-batch-convergence").value == "no slower"


@pytest.mark.slow
def test_a_training_learns_and_gives_the_same_twice() -> None:
    torch = pytest.importorskip("torch")
    if not batch_accuracy.FASHION_MNIST.is_dir():
        pytest.skip("needs apt install dataset-fashion-mnist")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one, two = (batch_accuracy.train(256, 1, 2) for _ in range(2))
    finally:
        torch.set_num_threads(before)
    assert one == two
    assert 20 < one[-1] < 100
