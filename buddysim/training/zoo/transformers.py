"""Transformers: a vision transformer, GPT-2 and BERT.

By default attention is written out (scores, softmax, weighted sum), as frameworks without a fused kernel store it;
``fused=true`` takes one. Queries, keys and values come from three layers, which implementations often fuse into one.
"""

from __future__ import annotations

from functools import partial

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network

_GPT2_WORDS = 50_257
_GPT2_TOKENS = 1024
_BERT_WORDS = 30_522
_BERT_TOKENS = 512
_SEGMENTS = 2
_DROPOUT = 0.1


def _vit_b16(fused: bool = False) -> Network:
    net = NetworkBuilder(
        "vit-b16",
        (3, 224, 224),
        "Dosovitskiy et al., ICLR 2021, Table 1 (ViT-Base, patches of 16x16); torchvision",
        "vision transformer: 12 blocks of 768 features, 12 heads, ImageNet",
    )
    net.add("conv", name="patches", channels=768, kernel=16, stride=16)
    net.add("positions", name="positions", extra=1)
    for number in range(1, 13):
        _before(net, f"block{number}", 768, 12, dropout=0.0, fused=fused)
    net.add("layernorm", name="norm")
    net.add("take", name="class_token")
    net.add("fc", name="head", features=1000)
    net.add("softmax", name="softmax")
    return net.build()


def _gpt2(
    name: str,
    blocks: int,
    features: int,
    heads: int,
    *,
    tokens: int = _GPT2_TOKENS,
    vocabulary: int = _GPT2_WORDS,
    fused: bool = False,
) -> Network:
    net = NetworkBuilder(
        name,
        (tokens,),
        "Radford et al. 2019, Table 2; openai/gpt-2",
        f"decoder: {blocks} blocks of {features} features, {heads} heads, {tokens} tokens",
    )
    net.add("embedding", name="words", vocabulary=vocabulary, features=features)
    net.add("positions", name="positions", rows=max(tokens, _GPT2_TOKENS))
    net.add("dropout", name="drop", probability=_DROPOUT)
    for number in range(1, blocks + 1):
        _before(net, f"block{number}", features, heads, dropout=_DROPOUT, fused=fused, causal=True)
    net.add("layernorm", name="norm")
    net.add("fc", name="scores", features=vocabulary, bias=False, tied=True)
    net.add("softmax", name="softmax")
    return net.build()


def _bert(
    name: str,
    blocks: int,
    features: int,
    heads: int,
    *,
    tokens: int = _BERT_TOKENS,
    vocabulary: int = _BERT_WORDS,
    fused: bool = False,
) -> Network:
    """Every token is scored, as if all were masked; the paper masks 15 %. Next sentences aren't predicted."""
    net = NetworkBuilder(
        name,
        (tokens,),
        "Devlin et al., NAACL 2019, Section 3; google-research/bert, without the prediction of next sentences",
        f"encoder: {blocks} blocks of {features} features, {heads} heads, {tokens} tokens",
    )
    net.add("embedding", name="words", vocabulary=vocabulary, features=features)
    net.add("positions", name="positions", rows=max(tokens, _BERT_TOKENS))
    net.add("positions", name="segments", rows=_SEGMENTS)
    net.add("layernorm", name="norm")
    net.add("dropout", name="drop", probability=_DROPOUT)
    for number in range(1, blocks + 1):
        _behind(net, f"block{number}", features, heads, fused)
    net.add("fc", name="transform", features=features)
    net.add("gelu", name="gelu")
    net.add("layernorm", name="transform_norm")
    net.add("fc", name="scores", features=vocabulary, tied=True)
    net.add("softmax", name="softmax")
    return net.build()


def _before(
    net: NetworkBuilder, name: str, features: int, heads: int, dropout: float, fused: bool, causal: bool = False
) -> None:
    """Attention, then two fully connected layers, each after a normalisation and around a shortcut (pre-norm)."""
    start = net.last
    norm = net.add("layernorm", name=f"{name}/norm1")
    attended = _attention(net, name, norm, features, heads, dropout, fused, causal)
    middle = net.add("add", name=f"{name}/add1", inputs=[start, attended])
    net.add("layernorm", name=f"{name}/norm2")
    dense = _two_dense(net, name, features, dropout)
    net.add("add", name=f"{name}/add2", inputs=[middle, dense])


def _behind(net: NetworkBuilder, name: str, features: int, heads: int, fused: bool) -> None:
    """Return a block with normalisations after the sums (post-norm)."""
    start = net.last
    attended = _attention(net, name, start, features, heads, _DROPOUT, fused, causal=False)
    net.add("add", name=f"{name}/add1", inputs=[start, attended])
    middle = net.add("layernorm", name=f"{name}/norm1")
    dense = _two_dense(net, name, features, _DROPOUT)
    net.add("add", name=f"{name}/add2", inputs=[middle, dense])
    net.add("layernorm", name=f"{name}/norm2")


def _attention(
    net: NetworkBuilder, name: str, start: int, features: int, heads: int, dropout: float, fused: bool, causal: bool
) -> int:
    query, key, value = (
        net.add("fc", name=f"{name}/{role}", inputs=start, features=features) for role in ("query", "key", "value")
    )
    if fused:
        inputs = [query, key, value]
        net.add("attention", name=f"{name}/attended", inputs=inputs, heads=heads, probability=dropout, causal=causal)
        return _dense(net, f"{name}/projection", features, dropout)
    net.add("matmul", name=f"{name}/scores", inputs=[query, key], heads=heads, transposed=True)
    weights = net.add("softmax", name=f"{name}/shares")
    if dropout:
        weights = net.add("dropout", name=f"{name}/drop_shares", probability=dropout)
    net.add("matmul", name=f"{name}/attended", inputs=[weights, value], heads=heads)
    return _dense(net, f"{name}/projection", features, dropout)


def _two_dense(net: NetworkBuilder, name: str, features: int, dropout: float) -> int:
    net.add("fc", name=f"{name}/fc1", features=4 * features)
    net.add("gelu", name=f"{name}/gelu")
    return _dense(net, f"{name}/fc2", features, dropout)


def _dense(net: NetworkBuilder, name: str, features: int, dropout: float) -> int:
    last = net.add("fc", name=name, features=features)
    return net.add("dropout", name=f"{name}/drop", probability=dropout) if dropout else last


NETWORKS = {
    "vit-b16": _vit_b16,
    "gpt2": partial(_gpt2, "gpt2", 12, 768, 12),
    "gpt2-medium": partial(_gpt2, "gpt2-medium", 24, 1024, 16),
    "bert-base": partial(_bert, "bert-base", 12, 768, 12),
    "bert-large": partial(_bert, "bert-large", 24, 1024, 16),
}
