"""The bundled activations have the properties that the cDMA paper reports (Sec. IV)."""

from __future__ import annotations

import numpy as np
import pytest

from buddysim.formats.activations import ActivationsFile
from buddysim.training.contents.observed_activations import shipped


@pytest.fixture(scope="module")
def measured() -> ActivationsFile:
    return shipped()


def number(measured: ActivationsFile, name: str) -> int:
    return next(n for n, info in enumerate(measured.feature_maps) if info.name == name)


def relus(measured: ActivationsFile) -> list[int]:
    return [n for n, m in enumerate(measured.feature_maps) if m.kind == "relu" and m.follows == "conv"]


def test_shipped_training_is_finished_and_describes_its_origin(measured: ActivationsFile) -> None:
    assert measured.state == "finished"
    assert "60,000 images" in measured.provenance["data"]
    assert sum(info.kind == "conv" for info in measured.feature_maps) >= 5
    assert measured.points[-1].epoch >= 2
    assert measured.points[-1].accuracy > 0.85
    iterations = np.array([point.iteration for point in measured.points])
    assert np.sum(iterations <= 30) >= 10  # dense at the start


def test_the_first_conv_layer_stays_near_one_half(measured: ActivationsFile) -> None:
    density = measured.densities[:, relus(measured)[0]]
    assert np.all(np.abs(density - 0.5) < 0.06)  # the paper: 0.02 around 0.5


def test_pooling_makes_every_map_denser(measured: ActivationsFile) -> None:
    pools = [n for n, info in enumerate(measured.feature_maps) if info.kind == "maxpool"]
    assert len(pools) == 3
    for pool in pools:
        assert np.all(measured.densities[:, pool] > measured.densities[:, pool - 1])


def test_densities_fall_at_the_start(measured: ActivationsFile) -> None:
    iterations = np.array([point.iteration for point in measured.points])
    early = np.searchsorted(iterations, iterations[-1] // 10)
    for relu in relus(measured)[1:]:
        assert measured.densities[early, relu] < 0.75 * measured.densities[0, relu]


def test_deeper_layers_are_sparser_at_the_end(measured: ActivationsFile) -> None:
    last = [measured.densities[-1, relu] for relu in relus(measured)]
    assert last[0] == max(last)
    assert np.mean(last[3:]) < np.mean(last[:3])


def test_sizes_are_of_every_algorithm_layout_and_window(measured: ActivationsFile) -> None:
    sized = [point for point in measured.points if point.maps[0].sizes]
    assert len(sized) >= 5
    for info in sized[-1].maps:
        ratios = {(r.algorithm, r.layout, r.window): r for r in info.ratios()}
        assert len(ratios) == 3 * 3 * 5
        zvc = {layout: ratios["zvc", layout, 4096].bits for layout in ("NCHW", "NHWC", "CHWN")}
        assert len(set(zvc.values())) == 1  # ZVC doesn't mind the layout
        # exact: 32 bits for each word that isn't zero, one for each word
        assert zvc["NCHW"] == 32 * info.nonzero + info.elements


def test_stored_values_agree_with_their_statistics(measured: ActivationsFile) -> None:
    points = sorted({point for point, _ in measured.stored_values})
    assert len(points) >= 5
    relu = relus(measured)[0]
    values = measured.values(points[-1], relu)
    assert values.shape == (1, *measured.feature_maps[relu].shape)
    assert np.count_nonzero(values) / values.size == pytest.approx(
        measured.densities[points[-1], relu], abs=0.15
    )  # one image of the fifty


def test_densities_rise_again_slowly(measured: ActivationsFile) -> None:
    """Densities are U-shaped: they end above their lowest value, but for the first ReLU's."""
    for number, info in enumerate(measured.feature_maps):
        density = measured.densities[:, number]
        if info.kind in ("relu", "maxpool") and number != relus(measured)[0]:
            assert density.min() < 0.75 * density[0]
            assert 1.05 * density.min() < density[-1] < density[0]
    second = measured.densities[:, relus(measured)[1]]
    assert np.argmin(second) < len(second) // 2
    assert second[-1] > 1.3 * second.min()
