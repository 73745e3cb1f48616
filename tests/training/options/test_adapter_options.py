"""``--lora``, ``--qlora``, ``--lora-library``: what they say, which modules they mean, errors of one line."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.adapters.apply import adapt
from buddysim.training.adapters.targets import targets
from buddysim.training.architectures.published import published_config
from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import bfloat16
from buddysim.training.autograd.module import Module
from buddysim.training.options.adapter_options import LoraRequest, read_lora
from buddysim.training.options.config_options import ConfigOptions


def model_of(name: str) -> tuple[Module, str]:
    read = published_config(name)
    with Tape(bfloat16):
        return read.architecture.model(read.keys, ConfigOptions()), read.architecture.model_type


def test_a_rank_alone_means_the_default_modules():
    assert read_lora("16", False, "torchtune") == LoraRequest(16)


def test_modules_follow_the_rank():
    expected = LoraRequest(8, ("q_proj", "mlp.up_proj"), quantized=True, library="peft")
    assert read_lora("8, q_proj,mlp.up_proj", True, "peft") == expected


@pytest.mark.parametrize(
    ("text", "quantized", "library", "message"),
    [
        ("0", False, "torchtune", r"lora '0': expected RANK\[,MODULE..\], a rank of 1 to 65536"),
        ("q_proj", False, "torchtune", r"lora 'q_proj': expected RANK\[,MODULE..\]"),
        ("8,", False, "torchtune", r"lora '8,': expected RANK\[,MODULE..\]"),
        ("8", False, "pefft", "lora_library 'pefft': expected one of torchtune, peft .nearest: peft."),
        (None, True, "torchtune", "qlora: quantised weights can't be trained: expected lora RANK as well"),
        (None, False, "peft", "lora_library peft: there are no adapters"),
    ],
)
def test_errors_are_one_line(text: str | None, quantized: bool, library: str, message: str):
    with pytest.raises(BuddysimError, match=message) as caught:
        read_lora(text, quantized, library)
    assert "\n" not in str(caught.value)


def test_the_default_modules_are_those_of_peft():
    for name, expected in (("llama-3.2-1b", {"q_proj", "v_proj"}), ("gpt2", {"c_attn"})):
        assert {path.rpartition(".")[2] for path in targets(*model_of(name), ())} == expected


def test_all_are_the_linear_layers_of_blocks_without_the_output_matrix():
    model, model_type = model_of("llama-3.2-1b")
    assert len(targets(model, model_type, ("all",))) == 16 * 7
    assert list(targets(model, model_type, ("lm_head",))) == ["lm_head"]


def test_a_name_that_no_layer_has_is_refused_with_those_that_there_are():
    model, model_type = model_of("llama-3.2-1b")
    with pytest.raises(BuddysimError, match=r"no linear layer is named 'q_prj': expected .*nearest: q_proj"):
        targets(model, model_type, ("q_prj",))


@pytest.mark.parametrize("library", ["torchtune", "peft"])
def test_only_adapters_are_trained_and_blocks_have_4_bits(library: str):
    read = published_config("llama-3.2-1b")
    with Tape(bfloat16) as tape:
        model = read.architecture.model(read.keys, ConfigOptions())
        adapt(model, "llama", LoraRequest(8, quantized=True, library=library), fused=False)
        tape.settle()
    trained = {name: one.numel() for name, one in model.named_parameters() if one.requires_grad}
    heads, keys, features = 32 * 64, 8 * 64, 2048
    assert sum(trained.values()) == 16 * 8 * (features + heads + features + keys)
    assert all(".lora_" in name for name in trained)
    weights = features * (heads + 2 * keys) + heads * features + 3 * features * 8192
    packed = [one.bytes for one in tape.storages if one.bytes and one.label == "" and one.kind == "parameter"]
    assert sum(size for size in packed if size > 1 << 20) >= 16 * weights // 2
    live = sum(one.bytes for one in tape.storages)
    assert live == tape.peak_bytes() == list(tape.live_bytes())[-1]
    other = 2 * (128256 * features + 33 * features)
    assert 16 * weights // 2 + other < live < 1.05 * (16 * weights // 2 + other)
