"""Tiny configurations of the classes of `transformers` that the package knows, and their inputs.

Nothing is downloaded: a model is made from its configuration. Sizes differ from each other wherever they may, so that
no tensor can be taken for another.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers

BATCH = 3
TOKENS = 10
#: Of a class whose layers run by chunks of 64 tokens: more than one chunk.
LONGER = {"Qwen3NextForCausalLM": 70}
WORDS = 77

#: Keys of each class's ``config.json``, as Hugging Face writes it.
CONFIGS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

#: Classes that `transformers` runs with its own attention alone, or without any.
EAGER_ONLY = ("Gemma2ForCausalLM", "MptForCausalLM", "BloomForCausalLM", "GptOssForCausalLM", "Mamba2ForCausalLM")


def build(name: str, attention: str = "eager", dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    """A class's model in training mode, with random weights.

    Parameters
    ----------
    attention : of `transformers`: ``"eager"``, ``"sdpa"``
    """
    keys = {key: value for key, value in CONFIGS[name].items() if key != "model_type"}
    typed = transformers.AutoConfig.for_model(CONFIGS[name]["model_type"], **keys)
    typed._attn_implementation = attention
    typed.use_cache = False  # as transformers' Trainer sets it
    torch.manual_seed(0)
    model: torch.nn.Module = getattr(transformers, name)(typed)
    return model.to(dtype).train()


def inputs(name: str, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """A batch, with labels."""
    torch.manual_seed(1)
    if name.startswith("ViT"):
        pixels = torch.randn(BATCH, 3, 16, 16, dtype=dtype)
        return {"pixel_values": pixels, "labels": torch.randint(0, 7, (BATCH,))}
    shape = (BATCH, tokens(name))
    return {"input_ids": torch.randint(3, WORDS, shape), "labels": torch.randint(3, WORDS, shape)}


def tokens(name: str) -> int | None:
    """Tokens of a sequence; None of images."""
    return None if name.startswith("ViT") else LONGER.get(name, TOKENS)
