"""The cost model obeys laws on random layers, and equals times computed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.machine import TrainingMachine
from buddysim.training import Conv, Layer, simulate
from buddysim.training.cost import PASSES, CostModel
from buddysim.training.cost.calibration import GROUPS, VERSIONS, Calibration, common, shipped
from buddysim.training.cost.curve import PassTimeModel, PeakRates
from buddysim.training.cost.work import ConvWork, MatmulWork
from buddysim.training.named_network import load_network

MODELS = {
    (machine, library): CostModel.load(machine, library)
    for machine, library in [("titan-x", "cudnn4"), ("titan-xp", "cudnn5"), ("v100", "cudnn7"), ("h100-sxm", "generic")]
}
PINNED = Calibration("titan-x", "cudnn4", {pass_: dict.fromkeys(GROUPS, 0.75) for pass_ in PASSES}, {}, True)
PINNED_SHARED: dict[str, Any] = {
    "curves": {pass_: PassTimeModel(192.0, 8.0, 32.0, 2.5, 1.0, 10.0) for pass_ in PASSES},
    "ratio": {pass_: {"implicit_gemm": 1.5, "gemm": 2.0, "winograd": 0.6} for pass_ in PASSES},
    "fft": dict.fromkeys(PASSES, 0.9),
}
DIRECT = ("implicit_gemm", "implicit_precomp_gemm", "gemm")
models = st.sampled_from(sorted(MODELS)).map(lambda key: MODELS[key])
passes = st.sampled_from(PASSES)


@st.composite
def convs(draw: st.DrawFn) -> Conv:
    kernel = draw(st.sampled_from([1, 2, 3, 5, 7, 11]))
    stride, pad = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    groups = draw(st.sampled_from([1, 1, 1, 2, 4]))
    height, width = draw(st.integers(1, 300)), draw(st.integers(1, 300))
    assume(min(height, width) + 2 * pad >= kernel)
    inputs, outputs = (draw(st.integers(1, 300)) * groups for _ in range(2))
    out_h, out_w = ((extent + 2 * pad - kernel) // stride + 1 for extent in (height, width))
    return Conv(inputs, outputs, height, width, out_h, out_w, kernel, kernel, stride, stride, pad, pad, groups)


@given(models, convs(), passes, st.integers(1, 300), st.integers(1, 50))
@settings(max_examples=150, deadline=None)
def test_time_and_workspace_grow_with_the_batch(
    model: CostModel, conv: Conv, pass_: str, batch: int, more: int
) -> None:
    (known,) = (one for one in PASSES if one == pass_)
    small = {one.name: one for one in model.algorithms(ConvWork(conv, batch), known)}
    large = {one.name: one for one in model.algorithms(ConvWork(conv, batch + more), known)}
    assert small.keys() == large.keys()
    for name, one in small.items():
        assert one.time_ps <= large[name].time_ps
        assert one.workspace_bytes <= large[name].workspace_bytes


@given(models, convs(), passes, st.integers(1, 300))
@settings(max_examples=150, deadline=None)
def test_no_direct_algorithm_beats_the_machine(model: CostModel, conv: Conv, pass_: str, batch: int) -> None:
    (known,) = (one for one in PASSES if one == pass_)
    work = ConvWork(conv, batch)
    compute = work.flops / model.machine.training.fp32
    memory = work.bytes / model.machine.dram_bytes_per_s
    algorithms = model.algorithms(work, known)
    assert [one.time_ps for one in algorithms] == sorted(one.time_ps for one in algorithms)
    for one in algorithms:
        assert one.time_ps / 1e12 >= memory * (1 - 1e-9)
        if one.name in DIRECT:
            assert one.time_ps / 1e12 >= max(compute, memory) * (1 - 1e-9)


def test_a_product_by_hand() -> None:
    """Two products of 64 x 32 with inner dimension 10 take 81,920 operations; 20 columns take one tile of 32, too."""
    curve = PassTimeModel(rows=64.0, cols=32.0, inner=10.0, tail=0.5, bandwidth=0.5, launch_us=5.0)
    peak = PeakRates(flops=1e9, bytes_per_s=1e6, multiprocessors=2.0)
    product = MatmulWork(64, 32, 10, count=2)
    outputs, idle = (64 + 64) * 32 * 2, 0.5 * 2 * 4096
    compute = 2 * (outputs + idle) * (10 + 10) / 1e9
    assert product.flops == 81_920
    assert curve.compute_s(product, peak) == pytest.approx(compute)
    assert curve.compute_s(replace(product, cols=20), peak) == pytest.approx(compute)
    assert product.bytes == 2 * 4 * (64 * 10 + 10 * 32 + 64 * 32)
    assert curve.seconds(product, 100.0, 0.5, peak) == pytest.approx(5e-6 + 2 * compute)
    assert curve.seconds(product, 1e6, 0.5, peak) == pytest.approx(5e-6 + 2.0)


def test_products_of_the_passes() -> None:
    """conv2 of AlexNet for two samples: 27 x 27 outputs, 64 -> 192 channels, 5 x 5 windows."""
    work = ConvWork(Conv(64, 192, 27, 27, 27, 27, 5, 5, 1, 1, 2, 2), 2)
    assert work.product("forward") == MatmulWork(1458, 192, 1600)
    assert work.product("backward_data") == MatmulWork(1458, 64, 4800)
    assert work.product("backward_filter") == MatmulWork(1600, 192, 1458)
    assert {work.product(pass_).flops for pass_ in PASSES} == {work.flops}
    assert work.conv_class == "large"


@pytest.mark.parametrize(
    ("conv", "expected"),
    [
        (Conv(3, 64, 224, 224, 224, 224, 3, 3, 1, 1, 1, 1), "first"),
        (Conv(64, 64, 56, 56, 56, 56, 1, 1, 1, 1, 0, 0), "1x1"),
        (Conv(64, 64, 56, 56, 28, 28, 1, 1, 2, 2, 0, 0), "1x1-strided"),
        (Conv(64, 64, 56, 56, 28, 28, 3, 3, 2, 2, 1, 1), "strided"),
        (Conv(64, 128, 56, 56, 56, 56, 3, 3, 1, 1, 1, 1), "3x3"),
        (Conv(128, 128, 56, 56, 56, 56, 3, 3, 1, 1, 1, 1), "3x3-wide"),
        (Conv(64, 128, 56, 56, 56, 56, 5, 5, 1, 1, 2, 2), "large"),
    ],
)
def test_classes(conv: Conv, expected: str) -> None:
    assert ConvWork(conv, 1).conv_class == expected


def layer(network: str, name: str) -> Layer:
    return next(one for one in load_network(network).layers if one.name == name)


def test_layers_bound_by_memory_by_hand() -> None:
    """relu1_1 of VGG, 64 samples, on the Titan X: 2 x 822 MB at 63.85 % of 336 GB/s and 5 us (measured: 7.28 ms)."""
    model = MODELS["titan-x", "cudnn4"]
    relu = layer("vgg11", "relu1_1")
    moved = 2 * 64 * 64 * 224 * 224 * 4
    fraction = model.bandwidth_fraction("relu", "forward")
    assert model.dram_bytes(relu, 64, "forward") == moved
    assert model.time_ps(relu, 64, "forward") == 5_000_000 + round(moved / (336e9 * fraction) * 1e12)
    assert model.time_ps(relu, 64, "forward") / 1e9 == pytest.approx(7.28, rel=0.06)
    pool = layer("vgg11", "pool1")
    assert model.dram_bytes(pool, 1, "forward") == 4 * 64 * (224 * 224 + 112 * 112)
    assert model.dram_bytes(pool, 1, "backward") == 2 * model.dram_bytes(pool, 1, "forward")
    assert model.time_ps(layer("vgg11", "input"), 64, "forward") == 0


def test_layers_with_products() -> None:
    model = MODELS["titan-x", "cudnn4"]
    fc = layer("alexnet", "fc6")
    parts = [model.time_ps(fc, 128, pass_) for pass_ in ("backward_data", "backward_filter")]
    assert model.time_ps(fc, 128, "backward") == sum(parts)
    assert model.dram_bytes(fc, 128, "forward") == 4 * (128 * 9216 + 9216 * 4096 + 128 * 4096)
    lstm = next(one for one in load_network("big-lstm").layers if one.kind == "lstm")
    steps = lstm.gemms[1].count
    assert steps > 1
    assert model.time_ps(lstm, 8, "forward") > model.product_ps(
        MatmulWork(8, lstm.gemms[1].n, lstm.gemms[1].k), "forward"
    )
    assert model.time_ps(lstm, 8, "forward") < model.time_ps(lstm, 800, "forward")


@pytest.mark.parametrize("network", ["alexnet", "resnet50", "big-lstm", "mobilenet", "googlenet"])
def test_every_layer_has_a_time(network: str) -> None:
    model = MODELS["h100-sxm", "generic"]
    for one in load_network(network).layers:
        if one.conv is None:
            for pass_ in ("forward", "backward"):
                moved, spent = model.dram_bytes(one, 4, pass_), model.time_ps(one, 4, pass_)
                assert isinstance(spent, int)
                assert isinstance(moved, int)
                assert (spent > 0) == (moved > 0)
                assert model.time_ps(one, 8, pass_) >= spent


def test_calibrated_state_is_reported() -> None:
    model = CostModel.load("titan-x")
    assert (model.calibrated, model.library) == (True, "cudnn4")
    assert "convnet-benchmarks" in model.source
    assert CostModel.load("titan-x", "cudnn5").calibrated
    assert "DeepBench" in CostModel.load("titan-xp").source
    assert CostModel.load("gh200", precision="bf16").source == "predicted from h200"
    for machine in ("k40", "rtx-2080-ti"):
        model = CostModel.load(machine)
        assert not model.calibrated
        assert "uncalibrated" in model.source
        assert model.assumptions["efficiencies"].startswith("Uncalibrated")


def test_another_version_of_a_calibrated_gpu_is_uncalibrated() -> None:
    model = CostModel.load("titan-x", "cudnn3")
    assert not model.calibrated
    assert model.calibration is shipped()["titan-x", "cudnn4"]
    conv = layer("vgg11", "conv3_1")
    names = {one.name for one in model.conv_algorithms(conv, 64, "forward")}
    assert names == {"implicit_gemm", "implicit_precomp_gemm", "gemm", "fft"}


def test_unknown_library_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(BuddysimError, match=r"library 'cudn4' is unknown: .*\(nearest: cudnn4\)"):
        CostModel.load("titan-x", "cudn4")
    with pytest.raises(BuddysimError, match="titanx: unknown machine"):
        CostModel.load("titanx")


@pytest.mark.parametrize("library", ["cudnn0", "cudnn1", "cudnn10", "cudnn999"])
def test_versions_without_algorithms_are_refused(library: str) -> None:
    expected = f"library '{library}' is not modelled: expected cudnn2 .the oldest. to cudnn9 .the newest."
    with pytest.raises(BuddysimError, match=expected):
        CostModel.load("titan-x", library)
    with pytest.raises(BuddysimError, match=expected):
        CostModel.load("titan-x", library, PINNED)
    with pytest.raises(BuddysimError, match=expected):
        CostModel.load("titan-x", calibration=replace(PINNED, library=library))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_that_is_named_has_algorithms(version: int) -> None:
    model = CostModel.load("titan-x", f"cudnn{version}")
    for pass_ in PASSES:
        assert model.conv_algorithms(layer("vgg11", "conv1_1"), 1, pass_)


def test_time_of_a_conv_layer_as_another_kind_is_a_defect() -> None:
    with pytest.raises(ValueError, match="no CONV"):
        MODELS["titan-x", "cudnn4"].conv_algorithms(layer("vgg11", "relu1_1"), 1, "forward")


def test_algorithm_whose_workspace_does_not_fit_is_not_offered() -> None:
    """At batch 512, conv2_2 of VGG-16 needs 2 x 3.06 GiB of feature maps and 8.6 GiB of workspace."""
    conv = layer("vgg19", "conv2_2")
    small = CostModel.load("titan-x", "cudnn4")
    large = CostModel.load(
        TrainingMachine.load("titan-x").with_overrides({"training.device_memory": "24 GiB"}), "cudnn4"
    )
    assert large.conv_algorithms(conv, 512, "forward")[0].name == "fft_tiling"
    offered = small.conv_algorithms(conv, 512, "forward")
    assert [one.name for one in offered] == ["implicit_precomp_gemm", "implicit_gemm"]
    assert small.conv_algorithms(conv, 256, "forward")[0].name == "fft_tiling"
    tiny = CostModel.load(TrainingMachine.load("titan-x").with_overrides({"training.device_memory": "1 MiB"}), "cudnn4")
    assert [one.name for one in tiny.conv_algorithms(conv, 512, "forward")] == ["implicit_gemm"]


def test_a_workspace_may_take_all_memory_that_feature_maps_and_filters_leave() -> None:
    conv = layer("vgg19", "conv2_2")
    assert conv.conv is not None
    machine = TrainingMachine.load("titan-x")
    large = CostModel.load(machine.with_overrides({"training.device_memory": "24 GiB"}), "cudnn4")
    fastest = large.conv_algorithms(conv, 512, "forward")[0]
    needed = ConvWork(conv.conv, 512).bytes + fastest.workspace_bytes
    for memory, is_offered in ((needed, True), (needed - 1, False)):
        model = CostModel.load(machine.with_overrides({"training.device_memory": f"{memory} B"}), "cudnn4")
        assert (model.conv_algorithms(conv, 512, "forward")[0].name == fastest.name) == is_offered


@pytest.mark.parametrize("batch", [1, 32, 64, 128, 256])
def test_ffts_are_offered_up_to_the_largest_timed_feature_map(batch: int) -> None:
    """The batch has no effect; feature maps of VGG-16 are 224 x 224 in conv1_2 and 112 x 112 in conv2_2."""
    model = CostModel.load("titan-x", "cudnn4")
    every = CostModel(model.machine, model.library, model.calibration, model.shared, largest_fft=256)
    for pass_ in PASSES:
        large, timed = (
            {one.name for one in model.algorithms(ConvWork(layer("vgg19", name).conv, batch), pass_)}
            for name in ("conv1_2", "conv2_2")
        )
        assert not large & {"fft", "fft_tiling"}
        assert timed >= {"fft", "fft_tiling"}
        assert {one.name for one in every.algorithms(ConvWork(layer("vgg19", "conv1_2").conv, batch), pass_)} == timed


def test_times_of_a_user_machine_scale_with_its_rates() -> None:
    twice = TrainingMachine.load("titan-x").with_overrides({"training.fp32": "14 TFLOPS"})
    faster, slower = CostModel.load(twice, "cudnn4"), CostModel.load("titan-x", "cudnn4")
    conv = layer("vgg19", "conv3_2")
    name = "implicit_precomp_gemm"
    times = [
        next(one.time_ps for one in model.conv_algorithms(conv, 64, "forward") if one.name == name)
        for model in (faster, slower)
    ]
    assert 1.8 < times[1] / times[0] < 2


def test_memory_optimal_costs_what_the_vdnn_paper_says_in_kind() -> None:
    """vDNN, section V-C: with memory-optimal algorithms 55 to 65 % are lost, part of it to transfers."""
    model = MODELS["titan-x", "cudnn4"]
    fastest = slowest = 0
    for one in load_network("vgg19").layers:
        if one.conv is not None:
            for pass_ in PASSES:
                algorithms = model.conv_algorithms(one, 128, pass_)
                fastest += algorithms[0].time_ps
                slowest += next(each.time_ps for each in algorithms if each.name == "implicit_gemm")
    assert 0.5 < 1 - fastest / slowest < 0.7


def test_results_are_pinned() -> None:
    """The same integers on every machine: only the four basic operations are used on given numbers.

    By hand, direct: (802,816 + 192) x 128 outputs and 2.5 x 25.4 x 4096 idle ones, 2 x (1152 + 32) operations each, at
    7 TFLOPS are 34.86 ms, at 75 % 46.48 ms, and 10 us.
    """
    model = CostModel(TrainingMachine.load("titan-x"), "cudnn4", PINNED, replace(common(), **PINNED_SHARED))
    algorithms = model.conv_algorithms(layer("vgg19", "conv2_2"), 64, "forward")
    assert [(one.name, one.workspace_bytes, one.time_ps) for one in algorithms] == [
        ("fft_tiling", 1_212_153_856, 25_404_786_128),
        ("fft", 2_181_038_080, 33_132_291_926),
        ("implicit_precomp_gemm", 54_784, 46_488_422_519),
        ("implicit_gemm", 0, 69_727_633_779),
        ("gemm", 3_699_376_128, 92_966_845_039),
    ]


def test_a_machine_without_timings_takes_those_its_file_names() -> None:
    turing, volta = CostModel.load("rtx-2080-ti"), CostModel.load("v100")
    assert not turing.calibrated
    assert turing.borrowed
    assert turing.source == "uncalibrated: no timings of this GPU, those of v100 with cudnn7"
    product = MatmulWork(4096, 4096, 4096)
    for pass_ in PASSES:
        ratio = turing.product_ps(product, pass_) / volta.product_ps(product, pass_)
        assert ratio == pytest.approx(volta.machine.training.fp32 / turing.machine.training.fp32, rel=0.05)
    kepler = CostModel.load("k40")
    assert kepler.machine.issued_flops * 192 == pytest.approx(kepler.machine.training.fp32 * 128, rel=1e-3)
    peak = CostModel.load(kepler.machine.with_overrides({"training.fp32_single_issue": "4.29 TFLOPS"}))
    assert peak.product_ps(product, "forward") / kepler.product_ps(product, "forward") == pytest.approx(2 / 3, rel=0.02)


def derived_times(network: str, batch: int, machine: str, scheme: str) -> str | None:
    return simulate(network, batch, machine, scheme).provenance["assumptions"].get("derived_times")


def test_result_states_derived_times_of_algorithms_with_more_workspace_than_timed() -> None:
    """Timings of the Titan X with cuDNN 4 used 8 MiB of workspace; VGG-16 (256) needs gigabytes."""
    said = derived_times("vgg16-vdnn", 256, "titan-x", "baseline-p")
    assert said is not None
    assert "more than 8 MiB of workspace (here up to 4.32 GiB)" in said
    assert said.endswith("probably too short (optimistic).")
    assert derived_times("vgg16-vdnn", 256, "titan-x", "vdnn-all-m") is None  # no workspace
    assert derived_times("vgg16-vdnn", 256, "v100", "baseline-p") is None  # timings of the fastest algorithms


def test_every_assumption_is_a_sentence() -> None:
    for machine, precision in (("titan-x", "fp32"), ("v100", "fp16"), ("k40", "fp32"), ("rtx-2080-ti", "fp32")):
        result = simulate("alexnet-cifar10", 4, machine, "vdnn-all-m", precision=precision)
        for subject, text in result.assumptions.items():
            assert text[0].isupper(), subject
            assert text.endswith("."), subject
