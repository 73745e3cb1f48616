"""Times of recorded operators: constants of the GPU itself or a neighbour's, kinds of operators, laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.machine.training import TrainingMachine
from buddysim.training.calibration.evaluate import errors
from buddysim.training.cost import CostModel
from buddysim.training.cost.operators.constants import (
    ExpertConstants,
    OperatorConstants,
    fitted_constants,
    parse_constants,
)
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.model import FLASH2_ON_HOPPER, OperatorModel, neighbours
from buddysim.training.cost.operators.rows import read_outside
from buddysim.training.networks.recorded.work import AttentionWork, OperationWork, work_of
from buddysim.training.recorded_step.from_config import network_from_config


@pytest.fixture(scope="module")
def h100() -> OperatorModel:
    return OperatorModel(TrainingMachine.load("h100-sxm"))


def test_every_training_machine_has_times_of_every_kind() -> None:
    for name in TrainingMachine.names():
        machine = TrainingMachine.load(name)
        model = OperatorModel(machine)
        formats = ["fp32", *(one for one in ("fp16", "bf16") if getattr(machine.training, one) is not None)]
        for number_format in formats:
            assert model.time_ps(OperationWork(10**6, ((128, 128, 128, 1),), number_format)) > 0
        assert model.time_ps(OperationWork(10**8, kind="softmax")) > model.time_ps(OperationWork(10**4, kind="softmax"))


def test_a_gpu_without_timings_takes_a_neighbours_and_says_so() -> None:
    model = OperatorModel(TrainingMachine.load("rtx-4090"))
    model.time_ps(OperationWork(10**6, ((4096, 4096, 4096, 1),), "bf16"))
    assert model.borrowed == {"products in bf16": "l40s"}
    assert neighbours("h100-pcie")[:2] == ("h100-pcie", "h100-sxm")


def test_a_card_of_low_power_sustains_less_of_another_ones_rate() -> None:
    """70 of 174 W leave a T4 0.505 of its peak rates: what it takes from the V100 falls by as much."""
    t4, v100 = GpuFigures.of(TrainingMachine.load("t4")), GpuFigures.of(TrainingMachine.load("v100"))
    assert t4.sustained == pytest.approx((70 / 174) ** 0.75)
    assert v100.sustained == 1.0
    fitted = {name: one for name, one in fitted_constants().items() if name != "t4"}
    borrowed = OperatorModel(TrainingMachine.load("t4"), fitted=fitted).product_constants("fp32")
    other = fitted["v100"].products["fp32"].peak_fraction
    assert borrowed.peak_fraction == pytest.approx(other * (70 / 174) ** 0.75)
    own = OperatorModel(TrainingMachine.load("t4")).product_constants("fp32")
    assert own == fitted_constants()["t4"].products["fp32"]


def test_tensor_cores_at_half_rate_do_not_throttle() -> None:
    """An L40S needs 499 W for 362 TFLOPS and has 350, an RTX 4090 228 W for 165.2 and has 450.

    An RTX PRO 6000 needs 694 W for 503.8 TFLOPS and has 600. Products in FP32 throttle as the L4's on every card.
    """
    l40s, l4 = (fitted_constants()[name].products for name in ("l40s", "l4"))
    half = OperatorModel(TrainingMachine.load("rtx-4090"))
    for number_format in ("bf16", "fp16", "tf32"):
        assert half.product_constants(number_format).throttle == 0.0
    assert half.product_constants("fp32").throttle == l4["fp32"].throttle > 0
    full = OperatorModel(TrainingMachine.load("rtx-pro-6000"))
    assert full.product_constants("bf16").throttle == l40s["bf16"].throttle > 0
    low = TrainingMachine.load("rtx-4090").with_overrides({"training.power_limit_w": 227}, "rtx-4090")
    assert OperatorModel(low).product_constants("bf16").throttle == l40s["bf16"].throttle


@pytest.mark.parametrize("gpu", ["rtx-4070-ti-super", "rtx-4090", "rtx-5060-ti"])
def test_cards_of_users_are_predicted(gpu: str) -> None:
    """Half precision within 10 % at the median, 20 to 33 % if they throttled as the L40S."""
    figures, nothing = GpuFigures.of(TrainingMachine.load(gpu)), OperatorConstants(gpu)
    rows = [row for row in read_outside() if row.gpu == gpu and row.name in ("bf16", "fp16")]
    away = errors(figures, "products", rows, nothing, fitted_constants())
    hot = errors(replace(figures, power_limit_w=None), "products", rows, nothing, fitted_constants())
    assert len(rows) == 10
    assert away is not None
    assert hot is not None
    assert np.median(abs(away)) < 0.1 < 0.18 < np.median(abs(hot))


def test_attention_of_a_card_of_low_power() -> None:
    """An A10 has 150 of 250 W, the A100 whose kernel it takes all of its power."""
    own = fitted_constants()["a100-80"].attention["flash2"].peak_fraction[128]
    a10 = OperatorModel(TrainingMachine.load("a10"), fitted={"a100-80": fitted_constants()["a100-80"]})
    assert a10.attention_constants("flash").peak_fraction[128] == pytest.approx(own * 0.6**0.75)


def test_a_large_product_reaches_a_large_part_of_the_peak(h100: OperatorModel) -> None:
    spent = h100.time_ps(OperationWork(0, ((8192, 8192, 8192, 1),), "bf16")) / 1e12
    assert 0.6 < 2 * 8192**3 / spent / 989.4e12 < 0.9


def test_flash_attention_on_hopper_is_version_two(h100: OperatorModel) -> None:
    own = fitted_constants()["h100-sxm"].attention["flash3"].peak_fraction[128]
    assert h100.attention_constants("flash").peak_fraction[128] == pytest.approx(own * FLASH2_ON_HOPPER)


def test_groups_are_one_kernel(h100: OperatorModel) -> None:
    products = ((64, 1024, 1024, 64),)
    grouped = OperationWork(0, products, "bf16", grouped=True)
    single = OperationWork(0, ((64, 1024, 1024, 1),), "bf16")
    assert h100.time_ps(grouped) < 64 * h100.time_ps(single)


def test_grouped_products_compute_and_move_at_rates_of_their_own() -> None:
    plain = fitted_constants()["h100-sxm"].products["bf16"]
    grouped = ExpertConstants(computing=2.0, moving=4.0, activations=1.0, floor_us=0.0).grouped(plain)
    assert grouped == replace(plain, peak_fraction=plain.peak_fraction / 2, bandwidth=plain.bandwidth / 4)


def test_constants_are_read_as_they_are_written() -> None:
    for name, one in fitted_constants().items():
        assert parse_constants(one.to_toml(), name) == one


@settings(max_examples=10)
@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 4096), st.integers(0, 2))
def test_a_larger_product_never_takes_less_work(m: int, n: int, k: int, axis: int) -> None:
    """Twice an extent takes no less time, but for what a better split of it saves."""
    model = OperatorModel(TrainingMachine.load("a100-80"))
    extents = [m, n, k]
    before = model.time_ps(OperationWork(0, ((m, n, k, 1),), "bf16"))
    extents[axis] *= 2
    assert model.time_ps(OperationWork(0, ((extents[0], extents[1], extents[2], 1),), "bf16")) >= 0.98 * before


def test_work_of_a_step_names_kinds_formats_and_launchers() -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 9000,
        "max_position_embeddings": 32, "dtype": "bfloat16",
    }  # fmt: skip
    for compiled in (False, True):
        tape = network_from_config(config, sequence=32, compile=compiled).at(2, "adamw").tape
        works = {one.name: work_of(one, tape.compiled) for one in tape.operations}
        flash = works["_scaled_dot_product_flash_attention"]
        assert flash.attention == AttentionWork(2, 32, 32, 4, 2, 16)
        assert works["_scaled_dot_product_flash_attention_backward"].attention == flash.attention
        assert flash.number_format == works["mm"].number_format == "bf16"
        assert flash.launcher == ("compiled" if compiled else "forward")
        assert works["_foreach_mul_"].launcher == "optimizer"
        assert works["embedding"].bytes < 64 * 64 * 2 * 3
    assert works["mm"].products


def test_a_small_step_is_bound_by_the_host_and_compiling_shortens_it() -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 512,
        "max_position_embeddings": 32, "dtype": "bfloat16",
    }  # fmt: skip
    cost = CostModel.load("h100-sxm", precision="bf16")
    totals = []
    for compiled in (False, True):
        tape = network_from_config(config, sequence=16, compile=compiled).at(1, "none").tape
        works = [work_of(one, tape.compiled) for one in tape.operations]
        assert sum(map(cost.launch_ps, works)) > sum(map(cost.operation_ps, works))
        totals.append(cost.operations_ps(works))
    assert totals[1] < totals[0] / 2
