"""Feature maps are observed during a training on a few images."""

from __future__ import annotations

import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.compress.compressors import tensor_algorithms
from buddysim.formats.activations import ActivationsWriter, load_activations
from buddysim.training.contents.observe_training import (
    ObservationSettings,
    Reduction,
    _ObservedTraining,
    iterations_observed,
    observe_training,
    read_fashion_mnist,
)
from buddysim.training.named_network import load_network


def write_images(folder: Path, part: str, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count, dtype=np.uint8)
    pixels = (rng.random((count, 28, 28)) * 20 * (1 + labels[:, None, None])).astype(np.uint8)
    images = struct.pack(">4B3I", 0, 0, 8, 3, count, 28, 28) + pixels.tobytes()
    (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, 1))
    names = struct.pack(">4BI", 0, 0, 8, 1, count) + labels.tobytes()
    (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(names, 1))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_images(folder, "train", 60, 1)
    write_images(folder, "t10k", 8, 2)
    return folder


@pytest.mark.slow
def test_observation_is_deterministic(data: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
    settings = ObservationSettings(
        data=data, epochs=2, batch=10, samples=4, points=6, size_points=3, windows=(4096,), value_points=2
    )
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    reports: list[tuple[int, int]] = []
    for name in ("a", "b"):
        torch.rand(3)  # what the caller drew doesn't matter
        observe_training(tmp_path / name, settings, lambda done, total, loss: reports.append((done, total)))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    assert state.shape == torch.random.get_rng_state().shape
    activations = load_activations(tmp_path / "a")
    assert [point.iteration for point in activations.points] == iterations_observed(12, settings)[0]
    assert reports[-1] == (12, 12)
    sizes = [len(point.maps[0].sizes) for point in activations.points if point.iteration in (0, 6, 12)]
    assert sizes == [3 * len(tensor_algorithms())] * 3  # each in three layouts
    assert activations.points[-1].epoch == 2
    assert (activations.points[0].learning_rate, activations.points[-1].learning_rate) == (0.01, pytest.approx(0.001))
    kinds = [m.kind for m in activations.feature_maps]
    assert (kinds.count("conv"), kinds.count("relu"), kinds.count("maxpool")) == (6, 8, 3)
    assert [m.depth for m in activations.feature_maps if m.kind == "conv"] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert activations.densities[0, 0] == 1.0
    assert all(activations.values(point, number).shape[0] == 1 for point, number in activations.stored_values)


def test_observation_of_a_reduced_zoo_network(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
    settings = ObservationSettings(
        data=data, reduction=Reduction("resnet20", 0.5, 8), epochs=2, batch=10, samples=4, points=0, size_points=3,
        layouts=("NCHW",), windows=(4096,), algorithms=("rle",), valued=0,
    )  # fmt: skip
    last = []
    for size_points in (3, 2):
        observe_training(tmp_path / "a", replace(settings, size_points=size_points))
        activations = load_activations(tmp_path / "a")
        assert not activations.stored_values
        assert [m.name for m in activations.feature_maps[1:]] == [
            layer.name for layer in load_network("resnet20").layers if layer.kind in ("relu", "avgpool")
        ]
        assert activations.feature_maps[1].shape == (8, 8, 8)
        last.append(activations.points[-1])
    assert [point.epoch for point in activations.points] == [0, 2]
    assert last[0] == last[1]  # what was observed in between changed nothing
    assert {(s.algorithm, s.layout, s.window) for s in last[0].maps[1].sizes} == {("rle", "NCHW", 4096)}


def test_observation_leaves_running_statistics(data: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
    images, labels = read_fashion_mnist(data, "train")
    settings = ObservationSettings(data=data, reduction=Reduction("resnet20", 0.5, 8), batch=10, samples=4)
    training = _ObservedTraining(torch, settings, images, labels, images, labels)
    training.train(training.images[:10], training.labels[:10])
    before = {name: values.clone() for name, values in training.module.named_buffers()}
    with ActivationsWriter(tmp_path / "a", {}, training.infos) as writer:
        training.observe(writer, 1, 0.0, sized=False, valued=False)
    assert before
    assert all(torch.equal(values, before[name]) for name, values in training.module.named_buffers())


def test_iterations_are_dense_at_the_start() -> None:
    observed, sized, valued = iterations_observed(1874, ObservationSettings())
    assert observed[:8] == list(range(8))
    assert (min(observed), max(observed), len(sized)) == (0, 1874, 7)
    assert sized | valued <= set(observed)
    assert len([one for one in observed if one <= 187]) >= 20


def test_wrong_images_are_an_error(data: Path, tmp_path: Path) -> None:
    pixels, labels = read_fashion_mnist(data, "train")
    assert (pixels.shape, pixels.dtype, labels.shape) == ((60, 1, 28, 28), np.float32, (60,))
    with pytest.raises(BuddysimError, match="apt install dataset-fashion-mnist"):
        read_fashion_mnist(tmp_path, "train")
    path = data / "t10k-labels-idx1-ubyte.gz"
    for content, problem in (
        (b"no gzip", "the gzip stream is damaged or cut off"),
        (gzip.compress(b"short"), "expected an IDX file"),
        (gzip.compress(struct.pack(">4BI", 0, 0, 8, 1, 9) + bytes(8)), "16 bytes"),
        (gzip.compress(struct.pack(">4BI", 0, 0, 8, 1, 7) + bytes(7)), "8 images and 7 labels"),
        (gzip.compress(b"long enough")[:-9], "the gzip stream is damaged or cut off"),
    ):
        path.write_bytes(content)
        with pytest.raises(BuddysimError, match=problem) as caught:
            read_fashion_mnist(data, "t10k")
        assert "\n" not in str(caught.value)
