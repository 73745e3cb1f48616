"""Counting rules of the papers' numbers: each chosen reading has an effect, and the page shows the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from buddysim.papers.cdma import performance_numbers
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.paper_comparison import TOLERANCE
from buddysim.papers.reported_values import reported_value
from buddysim.papers.vdnn.memory_usage import (
    NONE_TAKEN,
    OTHERS,
    POLICIES,
    TAKEN,
    mean_saving,
    readings,
    saved_percent,
    used_bytes,
    weight_bytes,
)
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.named_network import load_network


@pytest.fixture(scope="module")
def training() -> SavedResults:
    return SavedResults()


def test_with_every_point_taken_the_savings_are_the_papers(training: SavedResults) -> None:
    for policy in POLICIES:
        for kind in ("peak", "average"):
            assert abs(mean_saving(training, policy, kind) - reported_value(f"{policy}-{kind}")) <= 100 * TOLERANCE, (
                policy
            )


def test_other_rules_give_other_savings(training: SavedResults) -> None:
    missed = [
        (policy, kind)
        for policy in POLICIES
        for kind in ("peak", "average")
        if abs(mean_saving(training, policy, kind, NONE_TAKEN) - reported_value(f"{policy}-{kind}")) > 100 * TOLERANCE
    ]
    assert len(missed) == 6


@pytest.mark.parametrize("name", OTHERS)
def test_each_point_matters(name: str, training: SavedResults) -> None:
    other = replace(TAKEN, **OTHERS[name])
    changes = [
        abs(mean_saving(training, policy, kind, other) - mean_saving(training, policy, kind))
        for policy in POLICIES
        for kind in ("peak", "average")
    ]
    assert max(changes) > 0.5


def test_the_page_has_none_each_alone_each_left_out_and_all() -> None:
    by_layer = readings()
    assert len(by_layer) == len(set(by_layer.values())) == 2 + 2 * len(OTHERS)
    assert by_layer["none of them"] == NONE_TAKEN
    assert by_layer["all four"] == TAKEN


def test_weights_once_and_the_entire_network(training: SavedResults) -> None:
    result = training.result("alexnet", 128, "vdnn-all-m")
    both = used_bytes(result, "peak", replace(TAKEN, gradients=True))
    assert both - used_bytes(result, "peak") == weight_bytes(result)
    network = load_network("alexnet")
    convs = [layer for layer in network.layers if layer.kind == "conv"]
    assert weight_bytes(result) == sum(network.layer_parameter_bytes(layer.index) for layer in convs)
    expected = 100 * (1 - used_bytes(result, "peak") / result["memory.baseline_bytes"])
    assert saved_percent(result, "peak") == pytest.approx(expected)


@pytest.mark.slow
def test_reported_zeros_are_in_every_map_but_the_images() -> None:
    assert performance_numbers.mean_ratio(performance_numbers.REPORTED) == pytest.approx(1 / 0.38)
    assert (
        performance_numbers.mean_ratio(performance_numbers.BEHIND_RELU) < 2.4
    )  # feature maps behind pooling layers are denser
    network = load_network("vgg16")
    contents = performance_numbers.reported_contents(network)
    assert [contents[layer.index].density for layer in network.layers] == [1.0] + [0.38] * (len(network.layers) - 1)


def test_only_networks_with_concatenations_depend_on_their_copies() -> None:
    without, offloaded = (
        performance_numbers.performance("titan-xp", "vdnn-all-p", concat=concat) for concat in (False, True)
    )
    for label, (name, _) in NETWORKS.items():
        joins = any(layer.kind == "concat" for layer in load_network(name).layers)
        assert (without[label] > offloaded[label]) == joins, label
