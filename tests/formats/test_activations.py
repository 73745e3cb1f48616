"""The activations file: written, read, truncated and damaged files."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress.tensors import tensor_ratios
from buddysim.formats.activations import (
    ActivationsError,
    ActivationsWriter,
    FeatureMapInfo,
    FeatureMapStatistics,
    TrainingPoint,
    load_activations,
    payload_sizes,
)

MAPS = (
    FeatureMapInfo("input", "input", (1, 4, 4)),
    FeatureMapInfo("relu1", "relu", (8, 4, 4), "conv", 1, 0.0),
    FeatureMapInfo("fc1", "fc", (10,), "relu", 2, 0.0, "classifier"),
)
RELU = np.maximum(np.random.default_rng(0).normal(size=(6, 8, 4, 4)), 0).astype(np.float32)


def statistics(number: int, values: np.ndarray) -> FeatureMapStatistics:
    sizes = payload_sizes(tensor_ratios(values))
    return FeatureMapStatistics(number, values.size, int(np.count_nonzero(values)), sizes, values.size)


def write(path: Path, **options: bool) -> None:
    with ActivationsWriter(path, {"tool": "test"}, MAPS, **options) as writer:
        writer.add_point(TrainingPoint(0, 0.0, 6, (statistics(1, RELU),), loss=float("nan"), learning_rate=0.1))
        writer.add_values(0, 1, RELU[:2])
        writer.add_point(TrainingPoint(10, 0.5, 6, (statistics(1, np.zeros_like(RELU)),), loss=2.5, accuracy=0.5))
        writer.add_values(1, 1, RELU > 0)
        writer.add_values(1, 2, np.ones((1, 10), np.float16))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("activations") / "good.maps"
    write(path)
    return path.read_bytes()


def test_activations_round_trip(tmp_path: Path) -> None:
    write(tmp_path / "x.maps")
    activations = load_activations(tmp_path / "x.maps")
    assert activations.feature_maps == MAPS
    assert activations.provenance == {"tool": "test"}
    assert activations.state == "finished"
    first, second = activations.points
    assert (first.loss, first.learning_rate, second.accuracy) == (None, 0.1, 0.5)
    assert first.maps[0].ratios() == tensor_ratios(RELU)
    density = np.count_nonzero(RELU) / RELU.size
    np.testing.assert_array_equal(activations.densities, [[np.nan, density, np.nan], [np.nan, 0, np.nan]])
    assert activations.mean_density(1) == pytest.approx(density / 2)
    assert activations.mean_density(0) is None
    assert activations.stored_values == [(0, 1), (1, 1), (1, 2)]
    np.testing.assert_array_equal(activations.values(0, 1), RELU[:2])
    np.testing.assert_array_equal(activations.values(1, 1), (RELU > 0).astype(np.uint8))
    assert activations.values(1, 2).dtype == np.float16
    with pytest.raises(BuddysimError, match="no values of feature map 0 at point 0"):
        activations.values(0, 0)


def test_mean_density_weighs_by_iterations(tmp_path: Path) -> None:
    with ActivationsWriter(tmp_path / "x.maps", {}, MAPS) as writer:
        for iteration, nonzero in ((0, 100), (10, 0), (30, 0)):
            writer.add_point(TrainingPoint(iteration, 0.0, 1, (FeatureMapStatistics(1, 100, nonzero),)))
    # a triangle of 10 x 1 / 2 over 30 iterations
    assert load_activations(tmp_path / "x.maps").mean_density(1) == pytest.approx(5 / 30)


def test_unfinished_file_appears_only_with_keep_part(tmp_path: Path) -> None:
    for partial in (False, True):
        writer = ActivationsWriter(tmp_path / f"{partial}.maps", {}, MAPS, keep_part=partial)
        writer.add_point(TrainingPoint(0, 0.0, 6, ()))
        writer.abort()
    assert [path.name for path in tmp_path.iterdir()] == ["True.maps.incomplete"]
    with pytest.raises(BuddysimError, match="interrupted capture"):
        load_activations(tmp_path / "True.maps.incomplete")
    activations = load_activations(tmp_path / "True.maps.incomplete", incomplete=True)
    assert activations.state == "interrupted: the file has no end"
    assert len(activations.points) == 1


def test_every_truncation_is_read_partially_or_refused(tmp_path: Path, good: bytes) -> None:
    path = tmp_path / "cut.maps"
    points = []
    for end in range(0, len(good), 7):
        path.write_bytes(good[:end])
        try:
            points.append(len(load_activations(path).points))
        except BuddysimError as error:
            assert "\n" not in str(error)
            assert not points  # once there are feature maps, a shorter file is no error
    assert points == sorted(points)
    assert points[-1] == 2


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, good: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("damaged") / "x.maps"
    path.write_bytes(good[:at] + bytes([good[at] ^ byte]) + good[at + 1 :])
    with pytest.raises(BuddysimError, match=r"x\.maps: .* at offset \d+: ") as caught:
        load_activations(path)
    assert "\n" not in str(caught.value)


def sections(data: bytes) -> list[tuple[bytes, bytes]]:
    parts, at = [], 24
    while at < len(data):
        kind, _, length, _, _ = struct.unpack_from("<4sIQII", data, at)
        parts.append((kind, data[at + 24 : at + 24 + length]))
        at += 24 + length
    return parts


def file_of(good: bytes, parts: list[tuple[bytes, bytes]]) -> bytes:
    data = good[:24]
    for kind, payload in parts:
        head = struct.pack("<4sIQI", kind, 0, len(payload), crc32(payload))
        data += head + struct.pack("<I", crc32(head)) + payload
    return data


def frame(value: object) -> bytes:
    return zstandard.compress(json.dumps(value).encode())


POINT = {"iteration": 20, "epoch": 0.0, "samples": 1, "maps": []}
MAP = {"map": 1, "elements": 4, "nonzero": 2}
SIZE = {"algorithm": "zvc", "layout": "NCHW", "window": 4096, "bits": 8}


@pytest.mark.parametrize(
    ("kind", "payload", "problem"),
    [
        (b"PONT", b"not a frame", "cannot be decompressed"),
        (b"PONT", zstandard.compress(b"{"), "JSON"),
        (b"PONT", zstandard.compress(b"\xff"), "JSON"),
        (b"PONT", frame([]), "content: expected a table"),
        (b"PONT", frame({**POINT, "surprise": 1}), "surprise"),
        (b"PONT", frame({**POINT, "samples": 0}), "samples"),
        (b"PONT", frame({**POINT, "iteration": 3}), "iteration 3 comes after 10"),
        (b"PONT", frame({**POINT, "iteration": "3"}), "iteration: "),
        (b"PONT", frame({**POINT, "maps": [{**MAP, "map": 3}]}), "feature map 3: expected each of 0 to 2"),
        (b"PONT", frame({**POINT, "maps": [MAP, MAP]}), "feature map 1: expected each of 0 to 2 at most once"),
        (b"PONT", frame({**POINT, "maps": [{**MAP, "nonzero": 5}]}), "5 of 4 not zero"),
        (b"PONT", frame({**POINT, "maps": [{**MAP, "sizes": [SIZE]}]}), "sizes of no elements"),
        (b"PONT", zstandard.compress(bytes(2**26 + 1)), "expected at most"),
        (b"MAPS", frame([]), "out of order"),
        (b"PROV", frame({}), "out of order"),
        (b"WHAT", b"", "unknown"),
        (b"DONE", frame({"points": 7, "values": 3, "state": "finished"}), "counts 7 points"),
        (b"VALU", b"", "0 bytes"),
        (b"VALU", struct.pack("<IIIBBH", 2, 0, 16, 1, 4, 0), "at point 2"),
        (b"VALU", struct.pack("<IIIBBH", 0, 0, 16, 9, 4, 0), "type 9"),
        (b"VALU", struct.pack("<IIIBBH", 0, 0, 16, 1, 4, 0), "too few for 4 axes"),
        (b"VALU", struct.pack("<IIIBBH4I", 0, 0, 16, 1, 4, 0, 1, 1, 4, 5), "expected (samples, (1, 4, 4))"),
        (b"VALU", struct.pack("<IIIBBH4I", 0, 1, 256, 1, 4, 0, 2, 8, 4, 4), "occur twice"),
    ],
)
def test_wrong_sections_with_right_checksums(
    tmp_path: Path, good: bytes, kind: bytes, payload: bytes, problem: str
) -> None:
    parts = sections(good)
    path = tmp_path / "x.maps"
    path.write_bytes(file_of(good, [*parts[:-1], (kind, payload)]))
    with pytest.raises(ActivationsError, match=r"x\.maps: .* at offset \d+: ") as caught:
        load_activations(path)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sections_after_the_end(tmp_path: Path, good: bytes) -> None:
    path = tmp_path / "x.maps"
    path.write_bytes(file_of(good, [*sections(good), (b"PONT", frame(POINT))]))
    with pytest.raises(ActivationsError, match="comes after the end"):
        load_activations(path)


def test_values_that_decompress_to_another_size(tmp_path: Path, good: bytes) -> None:
    head = struct.pack("<IIIBBH4I", 0, 0, 16, 1, 4, 0, 1, 1, 4, 4)
    path = tmp_path / "x.maps"
    path.write_bytes(file_of(good, [*sections(good)[:-1], (b"VALU", head + zstandard.compress(bytes(60)))]))
    with pytest.raises(ActivationsError, match="a zstd frame of 60 bytes: expected 64"):
        load_activations(path).values(0, 0)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(BuddysimError, match="No such file"):
        load_activations(tmp_path / "missing")
    with pytest.raises(BuddysimError, match="Is a directory"):
        load_activations(tmp_path)
    (tmp_path / "text").write_text("hello, this is not what you look for")
    with pytest.raises(BuddysimError, match="not an activations file"):
        load_activations(tmp_path / "text")
    with pytest.raises(BuddysimError, match="can't be written"):
        ActivationsWriter(tmp_path / "no" / "x.maps", {}, MAPS)


def test_writer_checks_its_arguments(tmp_path: Path) -> None:
    with ActivationsWriter(tmp_path / "x.maps", {}, MAPS) as writer:
        writer.add_point(TrainingPoint(0, 0.0, 1, ()))
        for point, number, values in (
            (1, 0, np.zeros((1, 1, 4, 4), np.float32)),
            (0, 3, np.zeros((1, 1, 4, 4), np.float32)),
            (0, 0, np.zeros((1, 4, 4), np.float32)),
            (0, 0, np.zeros((1, 1, 4, 4), np.float64)),
        ):
            with pytest.raises(ValueError):
                writer.add_values(point, number, values)
        with pytest.raises(ValueError):
            writer.add_point(TrainingPoint(0, 0.0, 1, (FeatureMapStatistics(9, 1, 1),)))
