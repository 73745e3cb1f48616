"""Steps as torch.compile runs them: what is retained, what is never allocated, and that all that is read exists."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from buddysim.training.architectures.read_config import read_config
from buddysim.training.architectures.registry import REGISTRY
from buddysim.training.autograd import Autocast, Tape
from buddysim.training.autograd.compiled import compiled
from buddysim.training.autograd.dtypes import DTYPES, bfloat16, float32
from buddysim.training.autograd.records import AllocationEvent, FreeEvent, StorageRecord
from buddysim.training.options.config_options import ConfigOptions

TINY: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "transformers" / "configs.json").read_text(encoding="utf-8")
)
#: Classes whose steps are of many operations.
LONGER = (
    "DeepseekV3ForCausalLM", "Glm4MoeForCausalLM", "GptOssForCausalLM", "Llama4ForCausalLM", "Qwen3NextForCausalLM",
    "Mamba2ForCausalLM",
)  # fmt: skip
HIDDEN_BYTES = 3 * 10 * 32 * 2
"""Of a hidden state in bf16: sums of the residual stream, and results of products that become part of one."""

NO_DROPOUT = {"OPTForCausalLM": {"dropout": 0.0}}


def step(content: dict[str, Any], recipe: str, attention: str, loss: str = "whole") -> Tape:
    """A training step of three sequences of ten tokens."""
    config = read_config(content)
    own = bfloat16 if recipe == "bf16" else float32
    sequence = None if content["model_type"] == "vit" else 10
    with Tape(default_dtype=own) as tape:
        options = ConfigOptions(sequence=sequence, attention=attention, loss=loss)
        model = config.architecture.model(config.keys, options)
        inputs = [
            tape.input(one.shape, own if one.dtype == "float" else DTYPES[one.dtype], name)
            for name, one in model.input_shapes(3).items()
        ]
        with tape.in_phase("forward"):
            if recipe == "amp-bf16":
                with Autocast(tape, bfloat16):
                    loss_ = model(*inputs)
            else:
                loss_ = model(*inputs)
        loss_.backward()
        del loss_
        model.zero_grad()
    return tape


def saved_storages(tape: Tape) -> list[StorageRecord]:
    """Return the storages of activations that autograd saves, each once, in the order of their allocation."""
    saved = [tape.storages[number] for number in sorted({one.storage for one in tape.saved})]
    return [one for one in saved if one.kind == "activation"]


def saved_bytes(tape: Tape) -> int:
    return sum(one.bytes for one in saved_storages(tape))


@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.slow) if one in LONGER else one for one in TINY])
@pytest.mark.parametrize("recipe", [pytest.param("fp32", marks=pytest.mark.slow), "bf16", "amp-bf16"])
def test_every_storage_lives_while_it_is_used(name: str, recipe: str) -> None:
    model = REGISTRY.find(name).model
    for attention in model.ATTENTIONS:
        for loss in ("whole", "fused") if model.WORDS else ("whole",):
            eager = step(TINY[name], recipe, attention, loss)
            tape = compiled(eager)
            alive: set[int] = set()
            for event in tape.events:
                if isinstance(event, AllocationEvent):
                    alive.add(event.storage)
                elif isinstance(event, FreeEvent):
                    alive.remove(event.storage)
                else:
                    assert {one.storage for one in (*event.reads, *event.writes)} <= alive
            assert all(tape.storages[one].phase == "setup" for one in alive)
            assert saved_bytes(tape) <= saved_bytes(eager)
            assert tape.peak_bytes() <= eager.peak_bytes() * 1.01  # what one kernel writes exists all at once
            assert sum(one.flops for one in tape.operations) == sum(one.flops for one in eager.operations)


def test_a_llama_block_keeps_inputs_of_products_and_sums() -> None:
    retained = compiled(step(TINY["LlamaForCausalLM"], "bf16", "flash")).saved
    block = Counter(
        (one.scope.removeprefix("model.layers.0."), one.producer)
        for one in retained
        if one.scope.startswith("model.layers.0.")
    )
    assert block == {
        ("input_layernorm", "rsqrt"): 1,
        ("input_layernorm", "mul"): 1,
        ("self_attn.v_proj", "mm"): 1,
        ("self_attn", "add"): 2,  # rotated queries and keys
        ("self_attn", "_scaled_dot_product_flash_attention"): 4,
        ("self_attn.o_proj", "mm"): 1,
        ("post_attention_layernorm", "rsqrt"): 1,
        ("post_attention_layernorm", "mul"): 1,
        ("mlp.gate_proj", "mm"): 1,
        ("mlp.up_proj", "mm"): 1,
        ("mlp", "mul"): 1,
    }
    sums = [one for one in retained if one.scope in ("model.layers.0", "model.layers.1")]
    assert [one.producer for one in sums] == ["add", "add", "add"]  # not the first: it follows from the embedding


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "LlamaForCausalLM",
        "OPTForCausalLM",
        "Phi3ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
        "ViTForImageClassification",
    ],
)
def test_pytorchs_partitioner_retains_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.decomposition import select_decomp_table

    from tests.training.transformers import configs

    content = {**TINY[name], **NO_DROPOUT.get(name, {})}
    monkeypatch.setitem(configs.CONFIGS, name, content)
    sizes: dict[int, int] = {}
    producers: list[str] = []

    def forward(graph: Any, _: Any) -> Any:
        (results,) = next(node for node in graph.graph.nodes if node.op == "output").args
        for node in results:
            value = node.meta.get("val") if hasattr(node, "meta") and node.op != "placeholder" else None
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                sizes[storage._cdata] = storage.nbytes()
                operator = str(node.target).removeprefix("aten.").partition(".")[0]
                while operator in ("_unsafe_view", "view"):
                    node = node.args[0]
                    operator = str(node.target).removeprefix("aten.").partition(".")[0]
                if storage.nbytes() == HIDDEN_BYTES and operator in ("add", "mm"):
                    producers.append(operator)
        return graph

    backend = aot_autograd(
        fw_compiler=forward,
        bw_compiler=lambda graph, _: graph,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=select_decomp_table(),
    )
    torch._dynamo.reset()
    model = torch.compile(configs.build(name, "eager", torch.bfloat16), backend=backend)
    model(**configs.inputs(name, torch.bfloat16)).loss.backward()
    tape = compiled(step(content, "bf16", "eager"))
    large = [size for size in sizes.values() if size > 2000]  # masks and statistics of rows are smaller
    retained = [one for one in saved_storages(tape) if one.bytes > 2000]
    assert sorted(one.bytes for one in retained) == sorted(large)
    hidden = [one.producer for one in saved_storages(tape) if one.bytes == HIDDEN_BYTES]
    assert Counter(one for one in hidden if one in ("add", "mm")) == Counter(producers)
