"""Times of the feature layers, next to those of all."""

from __future__ import annotations

from buddysim.training import simulate


def test_convolutions_take_nearly_all_of_the_time_of_vgg_and_the_classifier_the_rest() -> None:
    counters = simulate("vgg16", 64, "titan-x", "baseline-m").counters
    assert 0.9 * counters["time_ms"] < counters["feature_layers.time_ms"] < counters["time_ms"]
