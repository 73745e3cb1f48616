"""Reading of a config.json: defaults, spellings, and one clear line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.llama import LlamaConfig
from buddysim.training.architectures.read_config import read_config
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.step.assumptions import step_assumptions

TINY: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "transformers" / "configs.json").read_text(encoding="utf-8")
)
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 77,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
GPT2: dict[str, Any] = {"model_type": "gpt2", "vocab_size": 77, "n_embd": 32, "n_layer": 2, "n_head": 4}
GEMMA: dict[str, Any] = {
    **LLAMA,
    "architectures": ["Gemma2ForCausalLM"],
    "model_type": "gemma2",
    "num_key_value_heads": 2,
}
MIXTRAL: dict[str, Any] = {
    **LLAMA,
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "num_key_value_heads": 2,
    "num_local_experts": 4,
}
T5: dict[str, Any] = {
    "model_type": "t5",
    "vocab_size": 77,
    "d_model": 32,
    "d_ff": 56,
    "num_layers": 2,
    "num_heads": 4,
}
VIT: dict[str, Any] = {
    "model_type": "vit",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 56,
}


def problem_of(content: Any) -> str:
    with pytest.raises(BuddysimError) as caught:
        read_config(content)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix("model configuration: ")


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (LLAMA, {"hidden_size": "32"}, "hidden_size: expected an integer, found '32'"),
        (LLAMA, {"hidden_size": 32.5}, "hidden_size: expected an integer, found 32.5"),
        (LLAMA, {"hidden_size": None}, "hidden_size: expected an integer, found null"),
        (LLAMA, {"hidden_size": 0}, "hidden_size: expected at least 1, found 0"),
        (LLAMA, {"hidden_size": True}, "hidden_size: expected an integer, found true"),
        (LLAMA, {"num_hidden_layers": 10**9}, "num_hidden_layers: expected at most 1024, found 1000000000"),
        (LLAMA, {"vocab_size": -5}, "vocab_size: expected at least 1, found -5"),
        (LLAMA, {"tie_word_embeddings": "no"}, "tie_word_embeddings: expected true or false, found 'no'"),
        (LLAMA, {"num_attention_heads": 5}, "hidden_size: expected a multiple of num_attention_heads 5, found 32"),
        (
            LLAMA,
            {"num_key_value_heads": 3},
            "num_attention_heads: expected a multiple of num_key_value_heads 3, found 4",
        ),
        (LLAMA, {"head_dim": 7}, "rope_parameters: expected an even number of rotated features of a head, found 7"),
        (LLAMA, {"pad_token_id": 77}, "pad_token_id: expected below vocab_size 77, found 77"),
        (LLAMA, {"attention_dropout": 1.5}, "attention_dropout: expected less than 1, found 1.5"),
        (LLAMA, {"rope_scaling": "linear"}, "rope_scaling: expected an object, found 'linear'"),
        (
            LLAMA,
            {"rope_scaling": {"type": "linear"}},
            "rope_parameters.factor: expected a value, as rope_type is linear, found null",
        ),
        (
            LLAMA,
            {"rope_theta": 5e5, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
            "rope_theta: expected 10000.0, the rope_theta of rope_parameters, found 500000.0",
        ),
        (
            LLAMA,
            {"quantization_config": {"quant_method": "awq"}},
            "quantization_config: expected null, or quant_method 'fp8' or 'mxfp4' (nothing else is simulated), found "
            "{'quant_method': 'awq'}",
        ),
        (LLAMA, {"torch_dtype": "int8"}, "dtype: expected one of 'float32', 'bfloat16' or 'float16', found 'int8'"),
        (
            LLAMA,
            {"torch_dtype": "float32", "dtype": "bfloat16"},
            "torch_dtype: expected dtype 'bfloat16', which the file has too, found 'float32'",
        ),
        (GPT2, {"hidden_size": 64}, "hidden_size: expected n_embd 32, which the file has too, found 64"),
        (GPT2, {"head_dim": 16}, "head_dim: expected n_embd / n_head = 8, found 16"),
        (
            GEMMA,
            {"layer_types": ["full_attention"]},
            "layer_types: expected a name for each of 2 layers (num_hidden_layers), found 1 names",
        ),
        (
            GEMMA,
            {"sliding_window": None},
            "sliding_window: expected the tokens of a window, as layer_types has sliding_attention, found null",
        ),
        (MIXTRAL, {"num_experts_per_tok": 5}, "num_experts_per_tok: expected at most the 4 experts, found 5"),
        (
            MIXTRAL,
            {"output_router_logits": True},
            "output_router_logits: expected null or false (nothing else is simulated), found true",
        ),
        (VIT, {"patch_size": 300}, "patch_size: expected at most image_size 224, found 300"),
        (
            VIT,
            {"num_labels": 3, "id2label": {"0": "a", "1": "b"}},
            "num_labels: expected 2, the entries of id2label, found 3",
        ),
        (T5, {"feed_forward_proj": "gated-gulu"}, None),
    ],
)
def test_a_wrong_key_is_named_with_what_was_expected(base: Any, changes: Any, message: str | None) -> None:
    text = problem_of({**base, **changes})
    assert text == message if message is not None else "feed_forward_proj: expected one of gelu" in text


def test_layers_with_a_window_are_those_that_the_file_names() -> None:
    kinds = ["full_attention", "sliding_attention"]
    read = read_config({**GEMMA, "layer_types": kinds, "sliding_window": 64})
    assert read.keys.windows == [None, 64]
    assert read_config({**GEMMA, "sliding_window": 64}).keys.windows == [64, None]  # alternating, the first one has it


def test_a_token_may_take_all_experts() -> None:
    read_config({**MIXTRAL, "num_experts_per_tok": MIXTRAL["num_local_experts"]})


def test_an_architecture_that_is_not_known_is_named_with_those_that_are() -> None:
    text = problem_of({**LLAMA, "architectures": ["LlamaForCasualLM"]})
    listed = "one that buddysim list architectures prints"
    assert text == f"architectures: 'LlamaForCasualLM' is not known: expected {listed} (nearest: LlamaForCausalLM)"


@pytest.mark.parametrize(
    ("key", "name", "near"),
    [
        ("architectures", "MambaForCausalLM", ""),
        ("architectures", "Gemma3ForCausalLM", ""),
        ("architectures", "WhisperForConditionalGeneration", ""),
        ("architectures", "llamaforcausallm", " (nearest: LlamaForCausalLM)"),
        ("model_type", "mamba", ""),
        ("model_type", "gemma3", ""),
        ("model_type", "lama", " (nearest: llama)"),
    ],
)
def test_a_class_is_named_as_the_nearest_only_where_it_is_near(key: str, name: str, near: str) -> None:
    """Another model is no misspelling, however alike their names end."""
    content = {**LLAMA, "architectures": None, key: [name] if key == "architectures" else name}
    text = problem_of(content)
    assert text.partition(" (nearest")[2] == near.partition(" (nearest")[2]


def test_rotary_keys_of_each_kind_of_layer() -> None:
    """transformers 5 writes an object for each kind of layer, earlier versions keys of both next to each other."""
    gemma3 = {**GEMMA, "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "num_hidden_layers": 7}
    older = read_config(
        {**gemma3, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"factor": 8.0, "type": "linear"}}
    )
    assert older.keys.windows == [4096] * 5 + [None, 4096]
    full = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}
    newer = read_config({**gemma3, "rope_parameters": {"full_attention": full, "sliding_attention": {}}})
    assert newer.keys.rope_parameters == older.keys.rope_parameters
    scaled = {"full_attention": full, "sliding_attention": {"rope_type": "yarn"}}
    text = problem_of({**gemma3, "rope_parameters": scaled})
    assert text.startswith("rope_parameters.sliding_attention.rope_type: expected default")
    text = problem_of({**gemma3, "rope_parameters": {"full_attention": 3}})
    assert text == "rope_parameters.full_attention: expected an object, found 3"


def test_layers_without_positions_and_their_windows() -> None:
    smol = {**LLAMA, "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "num_hidden_layers": 4}
    smol |= {"pad_token_id": 0}
    assert read_config({**smol, "no_rope_layer_interval": 2}).keys.rotary == [True, False, True, False]
    window = {"use_sliding_window": True, "sliding_window": 8}
    assert read_config({**smol, **window}).keys.windows == [None, None, None, 8]
    assert read_config({**smol, **window, "no_rope_layers": [0, 1, 1, 1]}).keys.windows == [8, None, None, None]
    text = problem_of({**smol, "no_rope_layers": [1, 1]})
    assert text == "no_rope_layers: expected a number for each of 4 layers, found [1, 1]"


def test_weights_in_eight_bits_are_trained_in_the_dtype_of_the_file() -> None:
    network = network_from_config({**LLAMA, "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8"}})
    assert (network.options["dequantised"], network.options["recipe"]) == ("fp8", "bf16")
    assert "dequantised_weights" in step_assumptions(network.options, "none")
    assert "dequantised" not in network_from_config(LLAMA).options


def test_a_type_that_files_of_a_class_have_too() -> None:
    kimi = {**TINY["DeepseekV3ForCausalLM"], "model_type": "kimi_k2"}
    assert read_config(kimi).architecture.name == read_config({**kimi, "architectures": None}).architecture.name
    assert problem_of({**kimi, "model_type": "kimi_k3"}).startswith("model_type: expected 'deepseek_v3'")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"n_group": 3}, "n_routed_experts: expected a multiple of n_group 3, found 8"),
        ({"topk_group": 3}, "topk_group: expected at most the 2 groups (n_group), found 3"),
        ({"n_group": 8}, "n_group: expected groups of two experts at least, found 8"),
        ({"num_experts_per_tok": 5}, "num_experts_per_tok: expected at most the experts of 1 groups, found 5"),
        ({"num_key_value_heads": 2}, "num_key_value_heads: expected 4, the num_attention_heads, found 2"),
    ],
)
def test_groups_and_latents_that_contradict_each_other(more: dict[str, Any], text: str) -> None:
    assert problem_of({**TINY["DeepseekV3ForCausalLM"], **more}) == text


def test_chunks_are_a_mask_from_their_length_on() -> None:
    llama4 = TINY["Llama4ForCausalLM"]
    assert network_from_config(llama4, sequence=15).options["attention"] == "flash"
    assert network_from_config(llama4, sequence=16).options["attention"] == "efficient"
    with pytest.raises(BuddysimError, match="attention flash: expected efficient or eager: chunks of 16 are a mask"):
        network_from_config(llama4, sequence=16, attention="flash")
    text = problem_of({**llama4, "layer_types": ["full_attention"]})
    assert text == "layer_types: expected one for each of 2 layers, found 1"


def test_a_recurrence_does_not_end_with_a_document() -> None:
    qwen3_next = TINY["Qwen3NextForCausalLM"]
    with pytest.raises(BuddysimError, match="packed 2: expected 1: a recurrence doesn't end with a document"):
        network_from_config(qwen3_next, packed=2)
    text = problem_of({**qwen3_next, "layer_types": ["full_attention"]})
    assert text == "layer_types: expected one for each of 2 layers, found 1"
    text = problem_of({**qwen3_next, "linear_num_key_heads": 3})
    assert text == "linear_num_value_heads: expected a multiple of linear_num_key_heads 3, found 4"


def test_heads_of_mamba_have_the_expanded_features() -> None:
    mamba2 = TINY["Mamba2ForCausalLM"]
    text = problem_of({**mamba2, "num_heads": 3})
    assert text == "num_heads: expected 64 (expand x hidden_size) / head_dim 16, found 3"
    assert problem_of({**mamba2, "n_groups": 3}) == "num_heads: expected a multiple of n_groups 3, found 4"


def test_class_and_type_may_not_contradict_each_other() -> None:
    text = problem_of({**LLAMA, "model_type": "qwen2"})
    assert text == "model_type: expected 'llama', as architectures has LlamaForCausalLM, found 'qwen2'"


def test_a_missing_key_is_named_with_the_nearest() -> None:
    content = {**LLAMA, "hiden_size": 32}
    del content["hidden_size"]
    assert problem_of(content) == "hidden_size: expected a value, found no such key (nearest: hiden_size)"


def test_several_problems_are_counted() -> None:
    text = problem_of({**LLAMA, "hidden_size": "32", "vocab_size": None})
    assert text == "vocab_size: expected an integer, found null (and 1 more)"


@pytest.mark.parametrize("content", [[], 3, None, "text"])
def test_a_file_of_something_else_is_refused(content: Any, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content))
    with pytest.raises(BuddysimError, match="expected an object with the keys of a model configuration"):
        read_config(path)


def test_a_long_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(BuddysimError, match="not a model configuration: longer than"):
        read_config(path)


def test_the_name_is_the_folders_where_the_file_is_called_config(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    assert read_config(folder / "config.json").name == "my-llama"
    (folder / "seven.json").write_text(json.dumps(LLAMA))
    assert read_config(folder / "seven.json").name == "seven"


def test_earlier_and_later_spellings_are_one() -> None:
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    earlier = read_config({**LLAMA, "rope_theta": 5e5, "rope_scaling": {"type": "llama3", **scaling}}).keys
    later = read_config({**LLAMA, "rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **scaling}}).keys
    assert earlier == later
    assert isinstance(earlier, LlamaConfig)
    assert earlier.rope_parameters.factor == 8
    assert read_config({**GPT2, "num_attention_heads": 4}).keys == read_config(GPT2).keys


@pytest.mark.parametrize(
    ("spelling", "dtype"), [("bfloat16", "bfloat16"), ("torch.float16", "float16"), ("auto", None)]
)
def test_number_formats(spelling: str, dtype: str | None) -> None:
    assert read_config({**LLAMA, "torch_dtype": spelling}).keys.dtype == dtype
