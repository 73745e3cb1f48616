"""A captured program: ``launches.py PROGRAM MODEL.pt`` launches kernels on the tiny model's own tensors.

Programs: attention (a prompt's), rms-norm, paged-decode, adamw.
"""

from __future__ import annotations

import sys

import paged_decode_triton
import torch
from rms_norm_triton import rms_norm as normalize
from torch import Tensor

from tools.transformer_traces import kernels
from tools.transformer_traces.tiny_model import HEAD, HEADS, LAYERS, WIDTH, TinyModel, read

SCALE = HEAD**-0.5


def attention(model: TinyModel) -> None:
    """Attention of all layers over prompts of 512 tokens: keys and values are the cache that decoding reads."""
    length, conversations = 512, 4
    read(model, conversations, length)
    q, k, v = (_stacked(model, name) for name in ("query", "key", "value"))
    o = torch.zeros_like(q)
    heads = LAYERS * conversations * HEADS
    kernels.attend[(length // 64, heads)](q, k, v, o, SCALE, length, BM=64, BN=64, D=HEAD, num_warps=4, num_stages=2)


def rms_norm(model: TinyModel) -> None:
    """The norm behind the attention of each layer: adds the residual, and keeps the sum."""
    read(model, 16)
    weights = [layer.norm_hidden.weight.detach().bfloat16() for layer in model.layers]
    attended, x = (_stacked(model, name).flatten(1, 2) for name in ("attended", "x"))
    out = torch.zeros_like(x)
    for number, weight in enumerate(weights):
        rows = x.shape[1]
        tensors = attended[number], x[number], weight, out[number]
        normalize[(rows,)](*tensors, WIDTH, 1e-5, BLOCK=WIDTH, num_warps=1)


def paged_decode(model: TinyModel) -> None:
    """One token of 32 conversations of 16 to 128 tokens, in all layers; pools have pages for the longest ones."""
    conversations = 32
    read(model, conversations)
    lengths, order = paged_decode_triton.plan(conversations)
    tensors = [
        (
            layer.seen["query"][:, :, -1].bfloat16().contiguous(),
            *(paged_decode_triton.pool(layer.seen[name], lengths, order) for name in ("key", "value")),
        )
        for layer in model.layers
    ]
    results = [paged_decode_triton.launch(*own, lengths, order) for own in tensors]
    print(f"{len(results)} layers, {int(lengths.sum())} tokens")


def adamw(model: TinyModel, state: dict[str, Tensor]) -> None:
    """One update of the weights of the first layer's products, 2,048 of them a thread block."""
    names = ("weight", "gradient", "mean", "square")
    weight, gradient, mean, square = (state[name].chunk(LAYERS)[0].clone() for name in names)
    copy = weight.bfloat16()
    kernels.adamw[(len(weight) // 2048,)](
        weight, gradient, mean, square, copy, 1e-3, 0.99, 0.06, BLOCK=2048, num_warps=8
    )


def _stacked(model: TinyModel, name: str) -> Tensor:
    return torch.stack([layer.seen[name] for layer in model.layers]).bfloat16()


def main() -> None:
    program, path = sys.argv[1:]
    saved = torch.load(path)
    model = TinyModel()
    model.load_state_dict(saved["model"])
    if program == "adamw":
        adamw(model, saved["optimizer"])
    else:
        {"attention": attention, "rms-norm": rms_norm, "paged-decode": paged_decode}[program](model)


main()
