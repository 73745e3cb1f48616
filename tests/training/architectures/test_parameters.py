"""Parameters of architectures: as many as published, named and shaped as in transformers' models."""

from __future__ import annotations

import copy
import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures import published
from buddysim.training.architectures.read_config import ReadConfig, UnreadConfig, parse_config, read_config
from buddysim.training.autograd import Module, Tape
from buddysim.training.options.config_options import ConfigOptions

NAMES = published.names()
TINY: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "transformers" / "configs.json").read_text(encoding="utf-8")
)
#: Keys that change which parameters there are, by a name for the test.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tied": ("LlamaForCausalLM", {"tie_word_embeddings": True}),
    "biases": ("LlamaForCausalLM", {"attention_bias": True, "mlp_bias": True}),
    "one-kv-head": ("LlamaForCausalLM", {"num_key_value_heads": 1, "head_dim": 24}),
    "wide-embedding": ("OPTForCausalLM", {"word_embed_proj_dim": 16, "do_layer_norm_before": False}),
    "no-affine": ("OPTForCausalLM", {"layer_norm_elementwise_affine": False, "enable_bias": False}),
    "gated": ("T5ForConditionalGeneration", {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 3}),
    "some-experts": ("Qwen3MoeForCausalLM", {"mlp_only_layers": [0]}),
    "sparse-step": ("Qwen3MoeForCausalLM", {"decoder_sparse_step": 2}),
    "neox-tied": ("GPTNeoXForCausalLM", {"attention_bias": False, "tie_word_embeddings": True}),
    "bert-untied": ("BertForMaskedLM", {"tie_word_embeddings": False}),
    "inner": ("GPT2LMHeadModel", {"n_inner": 40}),
    "rectangle": ("ViTForImageClassification", {"image_size": [16, 32], "patch_size": [8, 4], "qkv_bias": False}),
}


def model_of(config: ReadConfig) -> Module:
    with Tape():
        return config.architecture.model(config.keys, ConfigOptions())


@pytest.mark.parametrize("name", NAMES)
def test_counts_equal_the_facts(name: str) -> None:
    facts = published.contents()[name]["_facts"]
    counted = sum(prod(one.shape) for one in model_of(published.published_config(name)).parameters())
    if "parameters" in facts:
        assert counted == facts["parameters"]
    else:  # torchvision's vit_l_16 and vit_h_14, and timm's giant and gigantic in millions
        expected = {"large-16": 304_326_632, "huge-14": 632_045_800, "giant-14": 1_012.61e6, "gigantic-14": 1_844.44e6}
        assert counted == pytest.approx(expected[name.removeprefix("vit-")], abs=5e3)


def test_thirty_counts_are_published_to_the_unit() -> None:
    assert sum(published.contents()[name]["_facts"].get("published", False) for name in NAMES) == 30


def test_a_shape_that_contradicts_itself_is_refused() -> None:
    as_printed = {**published.contents()["gpt3-13b"], "n_embd": 5140, "n_inner": 20560}
    with pytest.raises(BuddysimError) as caught:
        parse_config(UnreadConfig(as_printed, "gpt3-13b", "gpt3-13b"))
    assert str(caught.value) == "gpt3-13b: n_embd: expected a multiple of n_head 40, found 5140"


def cases() -> dict[str, dict[str, Any]]:
    variants = {name: {**TINY[base], **keys} for name, (base, keys) in VARIANTS.items()}
    full = {name: published.contents()[name] for name in NAMES if not name.startswith("mpt")}
    return {**TINY, **variants, **full}


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_every_tensor_is_that_of_transformers(name: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    content = {key: value for key, value in cases()[name].items() if key != "_facts"}
    config = read_config(content)
    keys = {key: value for key, value in copy.deepcopy(content).items() if key not in ("model_type", "torch_dtype")}
    with torch.device("meta"):
        typed = transformers.AutoConfig.for_model(content["model_type"], **keys)
        expected = getattr(transformers, config.architecture.name)(typed)
    model = model_of(config)
    assert [(path, one.shape) for path, one in model.named_parameters()] == [
        (path, tuple(one.shape)) for path, one in expected.named_parameters()
    ]
    tied = {path for path, _ in model.named_parameters(tied=True)}
    assert tied == {path for path, _ in expected.named_parameters(remove_duplicate=False)}
