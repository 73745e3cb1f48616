"""cDMA's schemes: bytes and times of their copies, and sources of densities."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.compress.compressors import REGISTRY
from buddysim.compress.tensors import tensor_ratios
from buddysim.compress.zlib import library
from buddysim.training.contents import Codec
from buddysim.training.contents.activation_options import make_codec
from buddysim.training.contents.generated import relu_map
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Network
from buddysim.training.schemes import cdma
from buddysim.training.schemes.cdma import CompressedCopies

GB = 10**9
LINKS = {
    "pcie3-peak": SimpleNamespace(offload_bytes_per_s=16 * GB, prefetch_bytes_per_s=16 * GB, latency_ps=0),
    "slow-back": SimpleNamespace(offload_bytes_per_s=16 * GB, prefetch_bytes_per_s=8 * GB, latency_ps=7),
}
MACHINE = SimpleNamespace(
    name="by hand",
    dram_bytes_per_s=336 * GB,
    training=SimpleNamespace(fp32=7 * 10**12),
    link="pcie3-peak",
    links=LINKS,
)


def copies(name: str, **extra: object) -> tuple[Network, CompressedCopies]:
    network = load_network("alexnet")
    options = TrainingOptions(link=extra.pop("link", None), extra=extra)  # type: ignore[arg-type]
    if name == "cdma":
        return network, cdma.compressed_copies(network, 256, MACHINE, options, extra["compressor"])  # type: ignore[arg-type]
    return network, cdma.scheme_copies(network, 256, MACHINE, options, name)  # type: ignore[arg-type]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "densities.toml"
    path.write_text(
        "[[feature_maps]]\nlayer = 'relu1'\ndensity = 0.4\n[[feature_maps]]\nlayer = 'relu5'\nratio = 13.8\n"
        "[[feature_maps]]\nlayer = 'relu4'\nratio = 2.0\n"
    )
    return str(path)


def layer(network: Network, name: str) -> int:
    return next(layer.index for layer in network.layers if layer.name == name)


def test_copies_by_hand(table: str) -> None:
    network, zv = copies("cdma-zv", density_table=table)
    # 64 x 55 x 55 x 4 B x 256 behind relu1, 40 % of them not zero: that and a mask bit per word.
    raw = network.output_bytes(layer(network, "relu1"), 256)
    assert raw == 198_246_400
    assert zv.moved_bytes(raw, layer(network, "relu1")) == round(raw * 0.43125)
    assert zv.copy_ps(raw, layer(network, "relu1"), "offload") == pytest.approx(raw * 0.43125 / 16e9 * 1e12, abs=40)
    # 13.8 times smaller: the cap of 200 GB/s holds, out and back.
    assert zv.copy_ps(2 * GB, layer(network, "relu5"), "offload") == 10**10
    assert zv.copy_ps(2 * GB, layer(network, "relu5"), "prefetch") == 10**10
    # The input image has density 1: a mask is all that is added.
    assert zv.moved_bytes(32_000, 0) == 33_000
    # The bandwidth-aware policy: 3 times faster at most, and nothing changes below that.
    _, bw = copies("cdma-bw", density_table=table)
    assert bw.copy_ps(48 * 10**8, layer(network, "relu5"), "offload") == 10**11
    assert bw.copy_ps(raw, layer(network, "relu1"), "offload") == zv.copy_ps(raw, layer(network, "relu1"), "offload")
    assert bw.moved_bytes(raw, layer(network, "relu5")) == zv.moved_bytes(raw, layer(network, "relu5"))


def test_directions_have_their_own_rates_and_the_links_latency(table: str) -> None:
    network, zv = copies("cdma-zv", density_table=table, link="slow-back")
    relu4 = layer(network, "relu4")
    assert zv.copy_ps(32 * 10**9, relu4, "offload") == 10**12 + 7
    assert zv.copy_ps(32 * 10**9, relu4, "prefetch") == 2 * 10**12 + 7


def test_mask_bytes_can_be_left_out(table: str) -> None:
    network, zv = copies("cdma-zv", density_table=table, mask_bytes=False)
    assert zv.moved_bytes(1000, layer(network, "relu1")) == 400
    assert zv.moved_bytes(1000, 0) == 1000


def test_generated_activations() -> None:
    network, zv = copies("cdma-zv", synthetic_density=0.4, synthetic_cluster=3, seed=2)
    assert "synthetic: density 0.4" in zv.source
    network, zl = copies("cdma-zl", synthetic_density=0.4, synthetic_cluster=3, seed=2)
    assert f"level 6 of {library()}" in zl.made_by
    assert zl.moved_bytes(10**6, layer(network, "relu1")) < zv.moved_bytes(10**6, layer(network, "relu1"))


def test_codecs() -> None:
    assert make_codec("zvc", {}) == Codec("zvc", "NCHW", 4096)
    assert make_codec("rle", {"map_layout": "CHWN", "codec_window": 65536, "mask_bytes": False}) == Codec(
        "rle", "CHWN", 65536
    )
    algorithms = {name: copies(name, synthetic_density=0.4)[1].codec.algorithm for name in cdma.SUMMARY}
    assert algorithms == {"cdma-zv": "zvc", "cdma-rl": "rle", "cdma-zl": "zlib", "cdma-bw": "zvc"}


@pytest.mark.parametrize("algorithm", REGISTRY.names())
def test_any_compressor(algorithm: str) -> None:
    """A copy moves the compressed size of a feature map of that density, in windows or in entries."""
    if not getattr(REGISTRY.find(algorithm), "available", lambda: True)():
        pytest.skip(f"{algorithm}: its library isn't installed")
    network, compressed = copies("cdma", compressor=algorithm, synthetic_density=0.25, synthetic_cluster=4)
    windows = "window" in REGISTRY.find(algorithm).OPTIONS
    assert compressed.codec.window == (4096 if windows else 128)
    assert (f"{algorithm}, NCHW, windows of 4096 B" if windows else f"{algorithm}, NCHW, entries of 128 B") == str(
        compressed.codec
    )
    relu5 = layer(network, "relu5")
    (expected,) = tensor_ratios(
        relu_map((16, 64, 13, 13), 0.25, 4), ["NCHW"], [compressed.codec.window], [algorithm]
    )  # the tile that stands for a feature map of 256 x 13 x 13
    raw = network.output_bytes(relu5, 256)
    assert compressed.moved_bytes(raw, relu5) == pytest.approx(raw / expected.ratio, rel=1e-6)
    assert compressed.moved_bytes(raw, relu5) < compressed.moved_bytes(raw, 0)  # the input image has no zeros
    measured = copies("cdma", compressor=algorithm)[1]
    assert measured.moved_bytes(raw, relu5) < measured.moved_bytes(raw, 0)


@pytest.mark.parametrize("name", cdma.SUMMARY)
def test_the_other_schemes_are_cdma_with_a_fixed_compressor(name: str) -> None:
    _, fixed = copies(name)
    algorithm = fixed.codec.algorithm
    general = copies("cdma", compressor=algorithm)[1]
    assert (general.codec, general.contents) == (fixed.codec, fixed.contents)
    assert general.cap_bytes_per_s >= fixed.cap_bytes_per_s


def test_a_compressor_of_entries_has_no_window() -> None:
    with pytest.raises(BuddysimError, match="window 4096: bpc has no windows, but entries of 128 B"):
        copies("cdma", compressor="bpc", codec_window=4096)
    with pytest.raises(BuddysimError, match=r"compressor 'zcv': unknown, .*nearest: zvc"):
        copies("cdma", compressor="zcv")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            {"synthetic_density": 0.4, "density_table": "x.toml"},
            "density_table and synthetic_density: expected one source of activations",
        ),
        ({"synthetic_density": 0.4, "epoch": 1}, "epoch: goes with activations, not with synthetic_density"),
        ({"synthetic_cluster": 3}, "synthetic_cluster: goes with synthetic_density, not with activations"),
        ({"synthetic_density": "much"}, "option synthetic_density: 'much': expected a number"),
        ({"synthetic_density": True}, "option synthetic_density: True"),
        ({"synthetic_density": 0.4, "map_layout": "NWHC"}, "map_layout 'NWHC': expected one of NCHW, NHWC, CHWN"),
        ({"synthetic_density": 0.4, "codec_window": 10}, "window 10 B: expected a multiple of 4 B"),
        ({"density_table": "none.toml"}, "none.toml: can't read the table of feature maps: No such file"),
    ],
)
def test_wrong_option_is_an_error_of_one_line(extra: dict[str, object], message: str) -> None:
    with pytest.raises(BuddysimError) as refused:
        copies("cdma-zv", **extra)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
