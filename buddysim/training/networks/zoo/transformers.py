"""Transformers: a vision transformer and GPT-2.

Attention is written out (scores, softmax, weighted sum), as frameworks without a fused kernel store it; queries, keys
and values come from three layers, which implementations often fuse into one.
"""

from __future__ import annotations

from functools import partial

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network

_GPT2_WORDS = 50_257
_GPT2_TOKENS = 1024
_GPT2_DROPOUT = 0.1


def _vit_b16() -> Network:
    net = NetworkBuilder(
        "vit-b16",
        (3, 224, 224),
        "Dosovitskiy et al., ICLR 2021, Table 1 (ViT-Base, patches of 16x16); torchvision",
        "vision transformer: 12 blocks of 768 features, 12 heads, ImageNet",
    )
    net.add("conv", name="patches", channels=768, kernel=16, stride=16)
    net.add("positions", name="positions", extra=1)
    for number in range(1, 13):
        _block(net, f"block{number}", features=768, heads=12, dropout=0.0)
    net.add("layernorm", name="norm")
    net.add("take", name="class_token")
    net.add("fc", name="head", features=1000)
    net.add("softmax", name="softmax")
    return net.build()


def _gpt2(name: str, blocks: int, features: int, heads: int) -> Network:
    net = NetworkBuilder(
        name,
        (_GPT2_TOKENS,),
        "Radford et al. 2019, Table 2; openai/gpt-2",
        f"decoder: {blocks} blocks of {features} features, {heads} heads, 1024 tokens",
    )
    net.add("embedding", name="words", vocabulary=_GPT2_WORDS, features=features)
    net.add("positions", name="positions")
    net.add("dropout", name="drop", share=_GPT2_DROPOUT)
    for number in range(1, blocks + 1):
        _block(net, f"block{number}", features, heads, dropout=_GPT2_DROPOUT)
    net.add("layernorm", name="norm")
    net.add("fc", name="scores", features=_GPT2_WORDS, bias=False, tied=True)
    net.add("softmax", name="softmax")
    return net.build()


def _block(net: NetworkBuilder, name: str, features: int, heads: int, dropout: float) -> None:
    """Attention, then two fully connected layers, each after a normalisation and around a shortcut (pre-norm)."""
    start = net.last
    norm = net.add("layernorm", name=f"{name}/norm1")
    query, key, value = (
        net.add("fc", name=f"{name}/{role}", inputs=norm, features=features) for role in ("query", "key", "value")
    )
    net.add("matmul", name=f"{name}/scores", inputs=[query, key], heads=heads, transposed=True)
    shares = net.add("softmax", name=f"{name}/shares")
    if dropout:
        shares = net.add("dropout", name=f"{name}/drop_shares", share=dropout)
    net.add("matmul", name=f"{name}/attended", inputs=[shares, value], heads=heads)
    attended = _dense(net, f"{name}/projection", features, dropout)
    middle = net.add("add", name=f"{name}/add1", inputs=[start, attended])
    net.add("layernorm", name=f"{name}/norm2")
    net.add("fc", name=f"{name}/fc1", features=4 * features)
    net.add("gelu", name=f"{name}/gelu")
    dense = _dense(net, f"{name}/fc2", features, dropout)
    net.add("add", name=f"{name}/add2", inputs=[middle, dense])


def _dense(net: NetworkBuilder, name: str, features: int, dropout: float) -> int:
    last = net.add("fc", name=name, features=features)
    return net.add("dropout", name=f"{name}/drop", share=dropout) if dropout else last


NETWORKS = {
    "vit-b16": _vit_b16,
    "gpt2": partial(_gpt2, "gpt2", 12, 768, 12),
    "gpt2-medium": partial(_gpt2, "gpt2-medium", 24, 1024, 16),
}
