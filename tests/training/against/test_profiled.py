"""Traces of PyTorch's profiler, taken here on the CPU: predicted operations stand in them, in the same order."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from buddysim.cli import main

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow

_SHAPE = {"vocab_size": 77, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "dtype": "float32"}
_ROPE = {**_SHAPE, "intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 64}
CONFIGS: dict[str, dict[str, Any]] = {
    "LlamaForCausalLM": {**_ROPE, "model_type": "llama", "tie_word_embeddings": False},
    "Qwen2ForCausalLM": {**_ROPE, "model_type": "qwen2", "tie_word_embeddings": False},
    "MistralForCausalLM": {**_ROPE, "model_type": "mistral", "sliding_window": None, "tie_word_embeddings": False},
    "GPT2LMHeadModel": {
        "model_type": "gpt2", "vocab_size": 77, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "dtype": "float32",
    },
}  # fmt: skip
BATCH, TOKENS = 3, 10


def profiled(config: dict[str, Any], path: Path, *, checkpoints: bool) -> None:
    """Train a few steps of a model with AdamW under the profiler, and write the trace."""
    keys = dict(config)
    model_type = keys.pop("model_type")
    torch.manual_seed(0)
    loaded = transformers.AutoConfig.for_model(model_type, **keys, attn_implementation="eager")
    model = transformers.AutoModelForCausalLM.from_config(loaded)
    model.train()
    if checkpoints:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    tokens = torch.randint(0, 77, (BATCH, TOKENS))
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule) as profiler:
        for _ in range(4):
            model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    profiler.export_chrome_trace(str(path))


@pytest.mark.parametrize(
    ("architecture", "checkpoints"), [*((name, False) for name in CONFIGS), ("LlamaForCausalLM", True)]
)
def test_the_prediction_stands_in_a_trace(tmp_path: Path, architecture: str, checkpoints: bool) -> None:
    config = CONFIGS[architecture]
    profiled(config, tmp_path / "t.json", checkpoints=checkpoints)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress((tmp_path / "t.json").read_bytes()))
    (tmp_path / "model.json").write_text(json.dumps({**config, "architectures": [architecture]}))
    scheme = "activation-checkpointing" if checkpoints else "eager"
    shape = ("--batch", str(BATCH), "--sequence", str(TOKENS), "--attention", "eager", "--machine", "a100-40")
    compare = ("--scheme", scheme, "--against", str(tmp_path / "t.json.gz"), "--json", str(tmp_path / "out.json"))
    assert main(["train", str(tmp_path / "model.json"), *shape, *compare]) == 0
    content = json.loads((tmp_path / "out.json").read_text())
    predicted = [one for one in content["operations"] if one["predicted_us"] is not None]
    assert len(predicted) > 150
    assert content["matched"] >= len(predicted) - 1  # a number that CUDA makes a tensor of (`scalar_tensor`)
    differences = [abs(one["predicted_us"] - one["measured_us"]) for one in content["operators"]]
    assert differences == sorted(differences, reverse=True)
