"""What holds memory at the peak: kinds by hand, sums equal to the record's peak for any model, options and scheme."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.training import simulate
from buddysim.training.autograd.blocks import divide_path, is_block
from buddysim.training.autograd.dtypes import bfloat16, float32
from buddysim.training.iteration.recorded_kinds import kinds_of_storages
from buddysim.training.optimizers import optimizer_names
from buddysim.training.peak_memory import peak_of_tape
from buddysim.training.recorded_step.from_config import network_from_config
from tests.training.networks.recorded.small_model import BATCH, FEATURES, HIDDEN, TOKENS, WORDS, recorded

MACHINE = "h100-sxm"
ELEMENTS, ROWS = BATCH * TOKENS * FEATURES, BATCH * TOKENS
NOT_ALLOCATED = ("library_workspace", "fragmentation", "context")
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 96, "vocab_size": 300, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "max_position_embeddings": 256, "tie_word_embeddings": True,
}  # fmt: skip


def check_sums(counters: dict[str, Any]) -> None:
    by_kind = counters["memory.by_kind"]
    allocated = sum(size for kind, size in by_kind.items() if kind not in NOT_ALLOCATED)
    assert allocated == counters["memory.peak_bytes"]
    assert allocated + by_kind["library_workspace"] + by_kind["fragmentation"] == counters["memory.peak_reserved_bytes"]
    assert all(type(size) is int and size >= 0 for size in by_kind.values())
    for key in ("memory.saved_by_layer_kind", "memory.saved_by_block"):
        if counters["memory.peak_operation"] is not None:
            assert sum(counters[key].values()) == by_kind["feature_maps"]


def test_what_each_layer_of_a_block_saves_by_hand() -> None:
    peak = peak_of_tape(recorded(3).tape)
    assert (peak.phase, peak.module, peak.operation) == ("backward", "", "_log_softmax_backward_data")
    saved = peak.saved_by_layer_kind
    assert saved["q"] == 3 * 2 * ELEMENTS  # the norm's output; k and v save the same
    assert saved["norm1"] == saved["norm2"] == 3 * (4 * ELEMENTS + 4 * ROWS + 2 * ELEMENTS)
    assert saved["down"] == 3 * 2 * ROWS * HIDDEN
    assert "k" not in saved
    blocks = {path: size for path, size in peak.saved_by_block.items() if is_block(path)}
    assert list(blocks) == ["layers.0", "layers.1", "layers.2"]
    assert len(set(blocks.values())) == 1
    assert list(saved.values()) == sorted(saved.values(), reverse=True)


def test_logits_and_loss_by_hand() -> None:
    """Logarithms of probabilities, their gradient, and that of the scores; total weight and first gradient."""
    by_kind = simulate(recorded(1), BATCH, MACHINE, "eager", optimizer="none").counters["memory.by_kind"]
    scores = ROWS * WORDS
    assert by_kind["logits"] == (4 + 4 + 4) * scores + 4 + 4
    assert by_kind["weight_gradients"] == 0


def test_a_gradient_of_the_head_that_waits_for_the_embeddings_is_no_logits() -> None:
    tape = network_from_config(CONFIG, sequence=32).at(1).tape
    kinds = kinds_of_storages(tape)
    weight = 2 * 300 * 64
    waiting = [one for one in tape.storages if one.scope == "lm_head" and one.bytes == weight]
    assert [kinds[one.number] for one in waiting if one.phase == "backward"] == ["weight_gradients"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("sequence", "recipe", "options", "gradients"),
    [
        (32, "bf16", {"lora": "4,q_proj", "qlora": True, "lora_library": "peft"}, set()),
        (64, "bf16", {}, {("mm", 2 * 300 * 64)}),
        (64, "amp-bf16", {}, {("mm", 2 * 300 * 64)}),
        (32, "amp-bf16", {"lora": "2,lm_head"}, {("mm", 2 * 300 * 2), ("mm", 2 * 64 * 2)}),
    ],
    ids=["frozen", "tied", "cast", "adapter"],
)
def test_a_gradient_of_the_heads_weight_is_not_taken_for_as_many_logits(
    sequence: int, recipe: str, options: dict[str, Any], gradients: set[tuple[str, int]], compiled: bool
) -> None:
    """Logits have tokens x 300 numbers, the weight 64 x 300: in bytes or in numbers they are equal here."""
    tape = network_from_config(CONFIG, sequence=sequence, recipe=recipe, compile=compiled, **options).at(1).tape
    kinds = kinds_of_storages(tape)
    of_head = [one for one in tape.storages if one.scope.startswith("lm_head") and one.kind != "gradient"]
    made = [one for one in of_head if one.phase == "backward"]
    assert {(one.producer, one.bytes) for one in made if kinds[one.number] == "weight_gradients"} == gradients
    loss = [kinds[one.number] for one in tape.storages if one.phase == "backward" and one.scope == "loss"]
    assert "weight_gradients" not in loss


def test_without_blocks_nothing_x_as_logits() -> None:
    assert "logits" not in kinds_of_storages(recorded(0).tape)
    assert "logits" in kinds_of_storages(recorded(1).tape)


@pytest.mark.parametrize(
    ("module", "block", "kind"),
    [
        ("model.layers.3.mlp.up_proj", "model.layers.3", "mlp"),
        ("model.layers.3.mlp.experts.7.w1", "model.layers.3", "mlp"),
        ("encoder.block.0.layer.1.DenseReluDense.wi", "encoder.block.0", "DenseReluDense"),
        ("transformer.h.11", "transformer.h.11", "block"),
        ("model.norm", "model.norm", "norm"),
        ("", "model", "model"),
    ],
)
def test_paths_are_divided_into_block_and_layer_kind(module: str, block: str, kind: str) -> None:
    assert divide_path(module) == (block, kind)


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 3), st.sampled_from(sorted(optimizer_names())), st.sampled_from([bfloat16, float32]),
)  # fmt: skip
def test_kinds_of_any_small_model_add_up_to_the_records_peak(layers: int, optimizer: str, dtype: Any) -> None:
    network = recorded(layers, optimizer, dtype)
    counters = simulate(network, BATCH, MACHINE, "eager", optimizer=optimizer).counters
    check_sums(counters)
    assert counters["memory.peak_bytes"] == network.tape.peak_bytes()
    state = sum(one.bytes for one in network.tape.storages if one.kind == "optimizer")
    assert counters["memory.by_kind"]["optimizer_state"] == state


@settings(max_examples=10, deadline=None)
@given(
    batch=st.integers(1, 3),
    sequence=st.integers(1, 48),
    recipe=st.sampled_from(["fp32", "amp-fp16", "amp-bf16", "bf16", "bf16-master"]),
    attention=st.sampled_from(["eager", "efficient", "flash"]),
    loss=st.sampled_from(["whole", "chunked:2", "fused"]),
    compiled=st.booleans(),
    tied=st.booleans(),
)
def test_kinds_of_any_configuration_add_up_to_the_records_peak(
    batch: int, sequence: int, compiled: bool, tied: bool, **options: str
) -> None:
    content = {**CONFIG, "tie_word_embeddings": tied}
    network = network_from_config(content, sequence=sequence, compile=compiled, **options)
    counters = simulate(network, batch, MACHINE, "eager").counters
    check_sums(counters)
    assert counters["memory.peak_bytes"] == network.at(batch, "adamw").tape.peak_bytes()


@pytest.mark.parametrize("scheme", ["eager", "oracle", "activation-checkpointing", "vdnn-all-p", "save-on-cpu"])
def test_kinds_add_up_under_every_scheme_of_a_record(scheme: str) -> None:
    counters = simulate(recorded(2), BATCH, MACHINE, scheme, optimizer="none").counters
    check_sums(counters)
    assert counters["memory.by_kind"]["weights"] > 0
    assert counters["memory.by_kind"]["workspace"] == 0


@pytest.mark.parametrize("scheme", ["baseline-m", "baseline-p", "eager", "vdnn-dyn", "gist-lossless", "cswap"])
def test_kinds_add_up_under_every_scheme_of_the_papers(scheme: str) -> None:
    counters = simulate("alexnet-cifar10", 4, "titan-x", scheme).counters
    check_sums(counters)
    assert counters["memory.peak_operation"] is None
