"""What a configuration leaves open: attention, loss, packed documents, experts, positions."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.blocks.experts import limited, tokens_by_expert
from buddysim.training.architectures.read_config import read_config
from buddysim.training.architectures.registry import REGISTRY
from buddysim.training.autograd import Autocast, Tape
from buddysim.training.autograd.dtypes import DTYPES, bfloat16, float32
from buddysim.training.options.config_options import ConfigOptions

TINY: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "transformers" / "configs.json").read_text(encoding="utf-8")
)
BATCH, TOKENS, WORDS = 3, 10, 77
LLAMA, MIXTRAL = TINY["LlamaForCausalLM"], TINY["MixtralForCausalLM"]


def step(content: dict[str, Any], recipe: str = "fp32", **options: Any) -> Tape:
    """A training step's tape."""
    config = read_config(content)
    own = bfloat16 if recipe == "bf16" else float32
    if "vit" not in content["model_type"]:
        options = {"sequence": TOKENS, **options}
    with Tape(default_dtype=own) as tape:
        model = config.architecture.model(config.keys, ConfigOptions(**options))
        inputs = {
            name: tape.input(one.shape, own if one.dtype == "float" else DTYPES[one.dtype], name)
            for name, one in model.input_shapes(BATCH).items()
        }
        with tape.in_phase("forward"):
            if recipe == "amp-bf16":
                with Autocast(tape, bfloat16):
                    loss = model(**inputs)
            else:
                loss = model(**inputs)
        loss.backward()
        assert all(one.grad is not None for one in model.parameters())
        del loss
        model.zero_grad()
    return tape


def saved_shapes(tape: Tape) -> set[tuple[int, ...]]:
    return {one.shape for one in tape.saved}


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("recipe", [pytest.param("fp32", marks=pytest.mark.slow), "bf16", "amp-bf16"])
def test_every_class_runs_in_all_its_variants_and_leaves_nothing(name: str, recipe: str) -> None:
    model = REGISTRY.find(name).model
    for attention in model.ATTENTIONS:
        for loss in ("whole", "chunked:3", "fused") if model.WORDS else ("whole",):
            tape = step(TINY[name], recipe, attention=attention, loss=loss)
            left = [one for one in tape.storages if one.freed is None and one.phase != "setup"]
            assert not left


def test_a_padded_batch_saves_wide_keys_and_a_mask_of_each_layer() -> None:
    flash, padded = step(LLAMA, "bf16", attention="flash"), step(LLAMA, "bf16", padding=0.3)
    wide, mask = (BATCH, 4, TOKENS, 8), (BATCH, 4, TOKENS, TOKENS)
    keys = [one.shape for one in padded.saved if one.name == "key"]
    assert keys == [wide] * 2
    assert {one.shape for one in flash.saved if one.name == "key"} == {(BATCH, 2, TOKENS, 8)}
    assert [one.shape for one in padded.saved if one.name == "attn_bias"] == [mask] * 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("LlamaForCausalLM", {"sequence": 65}, "sequence 65: expected at most 64, the positions that the model has"),
        ("BloomForCausalLM", {"attention": "flash"}, "attention flash: expected one of eager: BloomForCausalLM"),
        ("ViTForImageClassification", {"loss": "fused"}, "loss fused: expected whole"),
        ("ViTForImageClassification", {"sequence": 9}, "sequence 9: expected 5, the patches of an image and its class"),
        ("BertForMaskedLM", {"packed": 2}, "packed 2: expected 1: BertForMaskedLM attends to all of a sequence"),
        ("OPTForCausalLM", {"padding": 0.1}, "padding 0.1: expected 0: no mask of OPTForCausalLM is simulated"),
        ("LlamaForCausalLM", {"padding": 0.1, "attention": "flash"}, "attention flash: expected sdpa, efficient or"),
        ("BloomForCausalLM", {"attention": "sdpa"}, "attention sdpa: expected one of eager: BloomForCausalLM"),
        ("LlamaForCausalLM", {"packed": 11}, "packed 11: expected at most the 10 tokens of a sequence"),
        ("LlamaForCausalLM", {"expert_skew": 1.0}, "expert_skew 1.0: expected none: LlamaForCausalLM has no experts"),
    ],
)
def test_what_a_class_does_not_have_is_one_line(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BuddysimError) as caught:
        step(TINY[name], **options)
    assert message in str(caught.value)


def test_flash_saves_no_scores() -> None:
    scores = (BATCH * 4, TOKENS, TOKENS)
    assert scores in saved_shapes(step(LLAMA, "bf16", attention="eager"))
    assert scores not in saved_shapes(step(LLAMA, "bf16", attention="flash"))


def test_a_window_needs_a_mask_but_for_flash() -> None:
    base = {**TINY["MistralForCausalLM"], "num_key_value_heads": 4}
    narrow, wide = ({**base, "sliding_window": window} for window in (4, 32))
    peaks = {
        (width, attention): step(content, "bf16", attention=attention).peak_bytes()
        for width, content in (("narrow", narrow), ("wide", wide))
        for attention in ("efficient", "flash")
    }
    assert peaks["narrow", "efficient"] > peaks["wide", "efficient"]
    assert peaks["narrow", "flash"] == peaks["wide", "flash"]


def test_packed_documents_have_positions_of_their_own() -> None:
    tape = step(LLAMA, attention="eager", packed=2)
    assert [one.label for one in tape.storages if one.kind == "input"] == ["input_ids", "labels", "position_ids"]
    assert step(LLAMA, "bf16", attention="flash", packed=2).peak_bytes() > 0


def logits_of(tape: Tape) -> list[int]:
    """Bytes of storages with a score for each word, of any tokens."""
    return [
        one.bytes
        for one in tape.storages
        if one.phase != "setup"
        and one.producer in ("mm", "_log_softmax", "addmm")
        and any(
            op.writes and op.writes[0].storage == one.number and op.writes[0].shape[-1] == WORDS
            for op in tape.operations
        )
    ]


def test_chunked_and_fused_losses_never_have_all_logits_in_fp32() -> None:
    rows = BATCH * TOKENS
    whole, chunked, fused = (step(LLAMA, "bf16", loss=loss) for loss in ("whole", "chunked:5", "fused"))
    assert max(logits_of(whole)) == rows * WORDS * 4
    assert max(logits_of(chunked)) == rows // 5 * WORDS * 2
    assert len([one for one in logits_of(chunked) if one == rows // 5 * WORDS * 2]) == 5
    assert max(logits_of(fused)) <= 16 * WORDS * 2  # the power of two from 30 tokens / ceil(77 / 32 features)


def test_bytes_of_experts_do_not_depend_on_the_skew_and_products_do() -> None:
    uniform, skewed = step(MIXTRAL, "bf16"), step(MIXTRAL, "bf16", expert_skew=2.0)
    assert uniform.peak_bytes() == skewed.peak_bytes()
    grouped = [[one.products for one in tape.operations if one.name == "_grouped_mm"] for tape in (uniform, skewed)]
    assert grouped[0] != grouped[1]
    assert sum(one.flops for one in uniform.operations) == sum(one.flops for one in skewed.operations)


def test_a_capacity_leaves_rows_out() -> None:
    unlimited, limited_ = (
        step(MIXTRAL, "bf16", expert_skew=2.0),
        step(MIXTRAL, "bf16", expert_skew=2.0, expert_capacity=1.0),
    )
    assert sum(one.flops for one in limited_.operations) < sum(one.flops for one in unlimited.operations)


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0, 10.0])
@pytest.mark.parametrize(("tokens", "per_token", "experts"), [(30, 2, 4), (7, 3, 5), (1, 8, 128), (4096, 8, 128)])
def test_tokens_by_expert(tokens: int, per_token: int, experts: int, skew: float) -> None:
    counts = tokens_by_expert(tokens, per_token, experts, skew)
    assert sum(counts) == tokens * per_token
    assert max(counts) <= tokens
    if skew == 0:
        assert max(counts) - min(counts) <= 1
    assert all(first >= second for first, second in pairwise(counts))
    assert max(limited(counts, 1.0)) <= -(-tokens * per_token // experts)
