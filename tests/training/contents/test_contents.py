"""Contents of feature maps: zeros that spread through a network, observations, tables, generated activations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.compress.tensors import density
from buddysim.training.contents import Codec, mean_compressed_fraction
from buddysim.training.contents.dense import dense
from buddysim.training.contents.density_table import TableContents
from buddysim.training.contents.depth_mapping import DepthMappedContents, ObservedMap
from buddysim.training.contents.generated import GeneratedContents, max_pool, relu_map
from buddysim.training.contents.interpolate import PiecewiseLinear, mean_over
from buddysim.training.contents.maps import roles
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network, Pooling
from buddysim.training.networks.kinds import REGISTRY
from buddysim.training.networks.layer_kind import Zeros

DOCUMENT = Path(__file__).parents[3] / "docs" / "explanation" / "cdma.md"
ZVC = Codec()
DENSE = 33 / 32


def chain() -> Network:
    """Return a network of three CONV layers with ReLU, LRN and a pool behind the first, and two FC layers."""
    net = NetworkBuilder("chain", (3, 16, 16))
    for number, channels in enumerate((8, 8, 16)):
        net.add("conv", name=f"conv{number}", channels=channels, kernel=3, pad=1)
        net.add("relu", name=f"relu{number}")
        if number == 0:
            net.add("lrn", name="norm")
            net.add("maxpool", name="pool", kernel=2)
    net.add("fc", name="fc0", features=32)
    net.add("relu", name="fcrelu")
    net.add("dropout", name="drop", probability=0.25)
    net.add("fc", name="fc1", features=10)
    return net.build()


def by_name(network: Network, contents: dict) -> dict:
    return {layer.name: contents[layer.index] for layer in network.layers}


def observed(**fractions: float) -> DepthMappedContents:
    rows = [ObservedMap("relu", 0.0, 0.5), ObservedMap("relu", 1.0, 0.25), ObservedMap("pool", 0.0, 0.75)]
    return DepthMappedContents([*rows, ObservedMap("fc-relu", 0.0, 0.125)], "by hand")


def test_the_document_names_the_kinds_of_every_rule() -> None:
    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", DOCUMENT.read_text(encoding="utf-8"), flags=re.M)
    rules = {rule: re.findall(r"`([\w-]+)`", named) for rule, named in table if rule in get_args(Zeros)}
    declared = {rule: sorted(name for name, kind in REGISTRY.items() if kind.zeros == rule) for rule in get_args(Zeros)}
    assert rules == {**declared, "none": []}


def test_roles_are_kinds_with_a_relative_depth() -> None:
    network = chain()
    role_by_layer = {network.layers[index].name: (role.kind, role.depth) for index, role in roles(network).items()}
    assert role_by_layer == {
        "relu0": ("relu", 0.0),
        "relu1": ("relu", 0.5),
        "relu2": ("relu", 1.0),
        "pool": ("pool", 0.0),
        "fcrelu": ("fc-relu", 0.0),
    }


def test_observations_carry_over_by_kind_and_depth() -> None:
    network = chain()
    contents = by_name(network, observed().contents(network, 4, ZVC))
    densities = {name: contents.density for name, contents in contents.items()}
    assert densities == {
        "input": 1.0,
        "conv0": 1.0,
        "relu0": 0.5,
        "norm": 0.5,
        "pool": 0.75,
        "conv1": 1.0,
        "relu1": 0.375,
        "conv2": 1.0,
        "relu2": 0.25,
        "fc0": 1.0,
        "fcrelu": 0.125,
        "drop": 0.125 * 0.75,
        "fc1": 1.0,
    }
    assert contents["relu0"].compressed_fraction == 0.5 + 1 / 32
    assert contents["conv0"].compressed_fraction == contents[network.layers[0].name].compressed_fraction == DENSE
    assert contents["drop"].compressed_fraction == pytest.approx(0.125 * 0.75 + 1 / 32)


def test_masks_may_be_left_out() -> None:
    network = chain()
    contents = by_name(network, observed().contents(network, 4, Codec(masks=False)))
    assert contents["relu0"].ratio == 2.0
    assert contents["conv0"].ratio == 1.0
    assert contents["drop"].ratio == pytest.approx(1 / (0.125 * 0.75))


def test_pooling_retains_the_observed_fraction_of_zeros() -> None:
    net = NetworkBuilder("late", (3, 16, 16))
    for number in range(2):
        net.add("conv", name=f"conv{number}", channels=8, kernel=3, pad=1)
        net.add("relu", name=f"relu{number}")
    net.add("maxpool", name="pool", kernel=2)
    network = net.build()
    # Seen: half of the zeros left. Here: density 0.25 before, so 1 - 0.75 / 2 behind.
    assert by_name(network, observed().contents(network, 1, ZVC))["pool"].density == 0.625


def test_sizes_of_other_compressors_keep_their_ratio_to_zvc() -> None:
    rle = Codec("rle", "NHWC")
    seen = [
        ObservedMap("relu", 0.0, 0.5, {rle: 0.5 * (0.5 + 1 / 32)}),
        ObservedMap("relu", 1.0, 0.25, {rle: 0.7 * (0.25 + 1 / 32)}),
    ]
    network = chain()
    contents = by_name(network, DepthMappedContents(seen, "by hand").contents(network, 4, rle))
    assert contents["relu1"].compressed_fraction == pytest.approx(0.6 * (0.375 + 1 / 32))
    with pytest.raises(BuddysimError, match=r"by hand: no sizes for rle, NCHW, windows of 4096 B: expected one of rle"):
        DepthMappedContents(seen, "by hand").contents(network, 4, Codec("rle"))
    with pytest.raises(BuddysimError, match="no feature map behind a CONV layer and a ReLU"):
        DepthMappedContents([ObservedMap("pool", 0, 1)], "nothing")


def test_joins_are_weighted_by_size_and_sums_are_dense() -> None:
    net = NetworkBuilder("fork", (3, 8, 8))
    net.add("conv", name="trunk", channels=8, kernel=3, pad=1)
    first = net.add("relu", name="relu")
    wide = net.add("conv", name="wide", channels=24, kernel=1, inputs=[first])
    wide = net.add("relu", name="widerelu", inputs=[wide])
    net.add("concat", name="joined", inputs=[first, wide])
    behind = net.add("conv", name="behind", channels=8, kernel=1)
    net.add("add", name="sum", inputs=[first, behind])
    network = net.build()
    contents = by_name(network, observed().contents(network, 1, ZVC))
    assert contents["joined"].density == pytest.approx((8 * 0.5 + 24 * 0.375) / 32)
    assert contents["joined"].compressed_fraction == pytest.approx((8 * 0.5 + 24 * 0.375) / 32 + 1 / 32)
    assert contents["sum"].density == 1.0


def test_pooling_over_the_full_feature_map_is_dense() -> None:
    net = NetworkBuilder("global", (3, 8, 8))
    net.add("conv", channels=8, kernel=3, pad=1)
    net.add("relu")
    net.add("avgpool", name="pool")
    network = net.build()
    assert by_name(network, observed().contents(network, 1, ZVC))["pool"].density == 1.0


def test_average_is_weighted_by_size() -> None:
    network = chain()
    contents = observed().contents(network, 1, ZVC)
    names = {layer.name: layer.index for layer in network.layers}
    sizes = {names["relu0"]: 300, names["relu2"]: 100}
    assert mean_compressed_fraction(contents, sizes) == (300 * (0.5 + 1 / 32) + 100 * (0.25 + 1 / 32)) / 400


def test_piecewise_linear_interpolation_and_mean() -> None:
    line = PiecewiseLinear.through([(1, 4), (0, 1), (0, 3)])
    assert [line.value_at(x) for x in (-1, 0, 0.5, 1, 2)] == [2, 2, 3, 4, 4]
    assert mean_over([(0, 0), (1, 2), (3, 2)]) == pytest.approx((1 + 4) / 3)
    assert mean_over([(5, 1), (5, 3)]) == 2


TABLE = """
[[feature_maps]]
layer = "relu1"
density = 0.1
[[feature_maps]]
kind = "relu"
depth = 0
ratio = 2
[[feature_maps]]
kind = "relu"
depth = 1
ratio = 4
[[feature_maps]]
kind = "fc-relu"
density = 0.2
"""


def test_density_table_gives_contents_by_layer_and_kind(tmp_path: Path) -> None:
    path = tmp_path / "densities.toml"
    path.write_text(TABLE)
    network = chain()
    source = TableContents.read(path)
    contents = by_name(network, source.contents(network, 4, ZVC))
    assert contents["relu0"].compressed_fraction == 0.5
    assert contents["norm"].compressed_fraction == 0.5
    assert contents["relu1"].compressed_fraction == 0.1 + 1 / 32
    assert contents["relu2"].compressed_fraction == 0.25
    assert contents["fcrelu"].density == 0.2
    assert contents["pool"].compressed_fraction == DENSE
    assert "not named, taken as dense" in contents["pool"].origin
    assert str(path) in source.description


def test_density_table_may_be_csv(tmp_path: Path) -> None:
    path = tmp_path / "densities.csv"
    path.write_text("layer,kind,depth,density,ratio\nrelu*,,,0.5,\n,pool,0.0,,1.25\n")
    contents = by_name(chain(), TableContents.read(path).contents(chain(), 4, ZVC))
    assert contents["relu0"].compressed_fraction == contents["relu2"].compressed_fraction == 0.5 + 1 / 32
    assert contents["pool"].compressed_fraction == 0.8
    assert contents["fcrelu"].density == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no feature maps"),
        ("[[feature_maps]]\nlayer = 'relu1'", "feature_maps[0]: expected either a density or a ratio"),
        ("[[feature_maps]]\ndensity = 0.5", "expected either a layer or a kind"),
        ("[[feature_maps]]\nlayer = 'relu1'\ndensity = 1.5", "feature_maps[0].density: expected at most 1, got 1.5"),
        ("[[feature_maps]]\nlayer = 'relu1'\ndensity = true", "feature_maps[0].density: expected a number, got True"),
        ("[[feature_maps]]\nlayer = 'relu1'\nratio = 0", "feature_maps[0].ratio: expected at least 0.5, got 0"),
        ("[[feature_maps]]\nlayer = 'rleu1'\ndensity = 0.5", "layer 'rleu1': chain has none (nearest: relu"),
        ("[[feature_maps]]\nlayer = 'conv1'\ndensity = 0.5", "layer 'conv1' is conv: expected a ReLU or pooling layer"),
        (
            "[[feature_maps]]\nkind = 'conv'\ndensity = 0.5",
            "feature_maps[0].kind: expected one of relu, fc-relu, pool, got 'conv'",
        ),
        (
            "[[feature_maps]]\nlayer = 'relu1'\ndensities = 0.5",
            "feature_maps[0].densities: expected one of layer, kind, depth, density, ratio (nearest: density)",
        ),
        ("[feature_maps]\nlayer = 1", "feature_maps: expected a list, got {'layer': 1}"),
        ("feature_maps = [", "densities.toml: "),
    ],
)
def test_wrong_density_table_is_an_error_of_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "densities.toml"
    path.write_text(text)
    with pytest.raises(BuddysimError) as refused:
        TableContents.read(path).contents(chain(), 4, ZVC)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_density_table_has_no_sizes_of_other_compressors(tmp_path: Path) -> None:
    path = tmp_path / "densities.toml"
    path.write_text(TABLE)
    with pytest.raises(BuddysimError, match="sizes of rle do not follow from a density: expected a ratio"):
        TableContents.read(path).contents(chain(), 4, Codec("rle"))
    with pytest.raises(BuddysimError, match=r"expected a \.toml or \.csv file"):
        TableContents.read(tmp_path / "densities.txt")
    with pytest.raises(BuddysimError, match="No such file"):
        TableContents.read(tmp_path / "none.toml")


def test_generated_maps_have_their_density() -> None:
    tensor = relu_map((4, 8, 32, 32), 0.3, cluster=4, seed=1)
    assert density(tensor) == pytest.approx(0.3, abs=0.02)
    assert density(relu_map((2, 3, 5, 7), 1.0)) == 1.0
    assert density(relu_map((2, 3, 5, 7), 0.0)) == 0.0
    # Squares of 4 x 4 are zero as a whole; the first begins 3 elements outside of the feature map.
    squares = (tensor[:, :, 1:29, 1:29] != 0).reshape(4, 8, 7, 4, 7, 4)
    assert (squares.all(axis=(3, 5)) | ~squares.any(axis=(3, 5))).all()
    np.testing.assert_array_equal(tensor, relu_map((4, 8, 32, 32), 0.3, cluster=4, seed=1))
    assert not np.array_equal(tensor, relu_map((4, 8, 32, 32), 0.3, cluster=4, seed=2))


def test_generated_maps_are_equal_on_every_platform() -> None:
    tensor = relu_map((1, 1, 2, 4), 0.5, seed=3)
    assert tensor.view("<u4").ravel().tolist() == GENERATED


#: As words, of which every machine and version must draw the same.
GENERATED = [0, 0, 1067418382, 1070454472, 0, 0, 1072883933, 1069123109]


def test_max_pool() -> None:
    tensor = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    assert max_pool(tensor, Pooling(2, 2, 2, 2, 0, 0)).tolist() == [[[[5, 7], [13, 15]]]]
    assert max_pool(tensor, Pooling(3, 3, 1, 1, 0, 0)).tolist() == [[[[10, 11], [14, 15]]]]


def test_generated_activations_are_compressed_by_the_compressors() -> None:
    network = chain()
    source = GeneratedContents(0.4, cluster=4, seed=1)
    zvc = by_name(network, source.contents(network, 8, ZVC))
    assert zvc["relu0"].density == pytest.approx(0.4, abs=0.05)
    assert zvc["relu0"].compressed_fraction == pytest.approx(zvc["relu0"].density + 1 / 32)
    assert zvc["pool"].density > zvc["relu0"].density
    rle = by_name(network, source.contents(network, 8, Codec("rle")))
    across = by_name(network, source.contents(network, 8, Codec("rle", "NHWC")))
    assert (
        rle["relu0"].compressed_fraction < across["relu0"].compressed_fraction
    )  # zeros cluster along rows, not along channels
    zlib = by_name(network, source.contents(network, 8, Codec("zlib")))
    assert zlib["relu0"].compressed_fraction < rle["relu0"].compressed_fraction


@pytest.mark.parametrize("wrong", [{"fraction_nonzero": 1.1}, {"fraction_nonzero": 0.5, "cluster": 0}])
def test_wrong_synthetic_density_is_an_error(wrong: dict) -> None:
    with pytest.raises(BuddysimError, match="expected a number"):
        GeneratedContents(**wrong)


def test_dense_feature_map_under_each_compressor() -> None:
    assert dense(ZVC).compressed_fraction == DENSE
    assert dense(Codec(masks=False)).compressed_fraction == 1.0
    assert (
        dense(Codec("rle")).compressed_fraction == (4096 + 2 * 5) / 4096
    )  # a count of zeros and one of others for 255 words
    assert 1.0 < dense(Codec("zlib")).compressed_fraction < 1.005
