"""Variants of configurations against transformers: rotary scaling, norms, biases, soft caps, packed documents."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from buddysim.training.architectures.read_config import read_config  # noqa: E402
from buddysim.training.autograd import Autocast, Tape  # noqa: E402
from buddysim.training.autograd.dtypes import DTYPES, bfloat16, float32  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.options.config_options import ConfigOptions  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.compared import (  # noqa: E402
    differences_of,
    events_of_measured,
    events_of_tape,
    first_difference,
    saved_of_measured,
    saved_of_tape,
)
from tests.training.transformers.measured import measure  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_SCALED = {"factor": 2.0, "original_max_position_embeddings": 32}
#: Keys that a class's tiny configuration gets in addition, by a name for the test.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "rotary-linear": ("LlamaForCausalLM", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}),
    "rotary-dynamic": ("LlamaForCausalLM", {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}),
    "rotary-yarn": ("LlamaForCausalLM", {"rope_scaling": {"rope_type": "yarn", **_SCALED}}),
    "rotary-llama3": (
        "LlamaForCausalLM",
        {"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, **_SCALED}},
    ),
    "rotary-longrope": (
        "Phi3ForCausalLM",
        {
            "rope_scaling": {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4},
            "original_max_position_embeddings": 32,
        },
    ),
    "partly-rotated": ("Phi3ForCausalLM", {"partial_rotary_factor": 0.5}),
    "biases": ("LlamaForCausalLM", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "one-key-head": ("LlamaForCausalLM", {"num_key_value_heads": 1}),
    "all-key-heads": ("LlamaForCausalLM", {"num_key_value_heads": 4}),
    "attention-dropout": ("LlamaForCausalLM", {"attention_dropout": 0.1}),
    "some-windows": ("Qwen2ForCausalLM", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "no-window": ("MistralForCausalLM", {"sliding_window": None}),
    "no-soft-caps": ("Gemma2ForCausalLM", {"attn_logit_softcapping": None, "final_logit_softcapping": None}),
    "normalized-weights": ("Qwen3MoeForCausalLM", {"norm_topk_prob": True, "mlp_only_layers": [0]}),
    "fp32-scores": ("GPT2LMHeadModel", {"reorder_and_upcast_attn": True, "scale_attn_by_inverse_layer_idx": True}),
    "one-after-the-other": ("GPTNeoXForCausalLM", {"use_parallel_residual": False, "hidden_dropout": 0.1}),
    "norms-after": ("OPTForCausalLM", {"do_layer_norm_before": False, "word_embed_proj_dim": 16}),
    "residual-of-the-norm": ("BloomForCausalLM", {"apply_residual_connection_post_layernorm": True, "n_head": 8}),
    "odd-heads": ("BloomForCausalLM", {"hidden_size": 36, "n_head": 6, "hidden_dropout": 0.1}),
    "odd-mpt-heads": ("MptForCausalLM", {"d_model": 36, "n_heads": 6, "attn_config": {"clip_qkv": 6.0}}),
    "gated": ("T5ForConditionalGeneration", {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 3}),
    "unscaled": ("T5ForConditionalGeneration", {"tie_word_embeddings": False, "dropout_rate": 0.0}),
    "untied": ("BertForMaskedLM", {"tie_word_embeddings": False, "hidden_act": "gelu_new"}),
    "rectangles": ("ViTForImageClassification", {"patch_size": [4, 8], "qkv_bias": False, "hidden_dropout_prob": 0.1}),
    "quick-gelu": ("ViTForImageClassification", {"hidden_act": "quick_gelu"}),
    "windows-of-smollm": ("SmolLM3ForCausalLM", {"use_sliding_window": True, "sliding_window": 4}),
    "one-rotary-embedding": (
        "Gemma3ForCausalLM",
        {"layer_types": ["full_attention", "full_attention"], "final_logit_softcapping": 30.0},
    ),
    "no-latent-queries": (
        "DeepseekV3ForCausalLM",
        {"q_lora_rank": None, "rope_interleave": False, "norm_topk_prob": False, "attention_bias": True},
    ),
    "no-normalized-heads": ("Glm4MoeForCausalLM", {"use_qk_norm": False, "attention_bias": True, "n_group": 2}),
    "one-chunk": (
        "Mamba2ForCausalLM",
        {"chunk_size": 16, "n_groups": 1, "use_bias": True, "use_conv_bias": False, "residual_in_fp32": False},
    ),
    "whole-chunks": ("Mamba2ForCausalLM", {"chunk_size": 5, "n_groups": 4, "tie_word_embeddings": True}),
    "recurrences-alone": (
        "Qwen3NextForCausalLM",
        {"full_attention_interval": 4, "decoder_sparse_step": 2, "linear_num_key_heads": 4, "norm_topk_prob": False},
    ),
    "chunks": ("Llama4ForCausalLM", {"attention_chunk_size": 4, "num_experts_per_tok": 2}),
    "without-positions": ("Llama4ForCausalLM", {"no_rope_layer_interval": 1, "use_qk_norm": False}),
    "full-sinks": (
        "GptOssForCausalLM",
        {"layer_types": ["full_attention"] * 2, "attention_dropout": 0.1},
    ),
    "relu2": ("LlamaForCausalLM", {"hidden_act": "relu2"}),
}


def assert_equal(name: str, recipe: str, attention: Any, packed: int = 1, padding: float = 0.0) -> None:
    """Compare a step of a class with the same step of transformers' class, by CUDA's rules."""
    dtype = torch.bfloat16 if recipe == "bf16" else torch.float32
    model = configs.build(name, "eager" if attention == "eager" else "sdpa", dtype)
    batch = configs.inputs(name, dtype)
    if packed > 1:
        positions = torch.arange(configs.TOKENS) % (configs.TOKENS // packed)
        batch["position_ids"] = positions.repeat(configs.BATCH, 1)
    if padding:
        batch["attention_mask"] = (torch.arange(configs.TOKENS) < 7).long().repeat(configs.BATCH, 1)
    autocast = torch.autocast("cpu", torch.bfloat16) if recipe == "amp-bf16" else None
    with cuda_rules("efficient" if attention == "efficient" else "flash"):
        measured = measure(model, batch, steps=1, autocast=autocast)
    sequence = configs.tokens(name)
    options = ConfigOptions(sequence=sequence, attention=attention, packed=packed, padding=padding)
    tape = step(configs.CONFIGS[name], recipe, options)
    assert list(differences_of(saved_of_measured(measured), saved_of_tape(tape))) == []
    assert first_difference(events_of_measured(measured), events_of_tape(tape)) == ""


def step(content: dict[str, Any], recipe: str, options: ConfigOptions) -> Tape:
    config = read_config(content)
    own = bfloat16 if recipe == "bf16" else float32
    with Tape(default_dtype=own) as tape:
        model = config.architecture.model(config.keys, options)
        inputs = {
            name: tape.input(one.shape, own if one.dtype == "float" else DTYPES[one.dtype], label=name)
            for name, one in model.input_shapes(configs.BATCH).items()
        }
        with tape.in_phase("forward"), Autocast(tape, bfloat16) if recipe == "amp-bf16" else nullcontext():
            loss = model(**inputs)
        loss.backward()
        del loss
    return tape


@pytest.mark.parametrize("recipe", ["fp32", "amp-bf16"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_are_as_measured(variant: str, recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, keys = VARIANTS[variant]
    monkeypatch.setitem(configs.CONFIGS, name, {**configs.CONFIGS[name], **keys})
    assert_equal(name, recipe, "eager")


@pytest.mark.parametrize("attention", ["eager", "efficient"])
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "MistralForCausalLM", "GPTNeoXForCausalLM", "GPT2LMHeadModel"])
def test_packed_documents_are_as_measured(name: str, attention: str) -> None:
    assert_equal(name, "bf16", attention, packed=2)


@pytest.mark.parametrize("attention", ["eager", "efficient", "sdpa"])
@pytest.mark.parametrize(
    "name",
    [
        "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Gemma3ForCausalLM", "MixtralForCausalLM",
        "DeepseekV3ForCausalLM",
    ],
)  # fmt: skip
def test_padded_batches_are_as_measured(name: str, attention: str) -> None:
    assert_equal(name, "bf16", attention, padding=0.3)


@pytest.mark.parametrize("recipe", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "MistralForCausalLM"])
def test_pytorch_selects_a_kernel_as_measured(name: str, recipe: str) -> None:
    """Half precision without a mask takes flash, a window is a mask, fp32 takes the efficient kernel or none."""
    assert_equal(name, recipe, "sdpa")


def test_masks_of_classes_with_their_own_attention_are_as_measured() -> None:
    assert_equal("GptOssForCausalLM", "bf16", "eager", padding=0.3)
    assert_equal("Gemma2ForCausalLM", "bf16", "eager", padding=0.3)
