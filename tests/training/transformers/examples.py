"""One small call of each operator whose saved tensors depend on the device, as the table of differences names them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

from buddysim.training.networks.from_torch.cuda_rules import cuda_rules

Example = tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...], dict[str, Any]]

_HEADS = ((2, 4, 5, 8), (2, 4, 5, 8), (2, 4, 5, 8))
_GROUPED = ((2, 4, 5, 8), (2, 2, 5, 8), (2, 2, 5, 8))

#: By operator: the call, the shapes of its inputs; parameters come behind the first input.
EXAMPLES: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...]]] = {
    "pow": (lambda x: x.pow(2), ((3, 4),)),
    "rsqrt": (torch.rsqrt, ((3, 4),)),
    "exp": (torch.exp, ((3, 4),)),
    "softmax": (lambda x: F.softmax(x, -1), ((3, 4),)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), ((3, 4),)),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.zeros(3, dtype=torch.long)), ((3, 4),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), ((3, 4), (4,), (4,))),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), ((3, 4), (4,), (4,))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w, 1e-6), ((3, 4), (4,))),
    "dropout": (lambda x: F.dropout(x, 0.1), ((3, 4),)),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), _HEADS),
    "attention with a mask": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.ones(2, 1, 5, 5, dtype=torch.bool)),
        _HEADS,
    ),
    "attention with dropout": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.1), _HEADS),
    "attention of grouped queries": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        _GROUPED,
    ),
}


def saved(operator: str, recipe: str, cuda: bool) -> str:
    """What a call saves: ``"Pow.self float32 3x4"``, several apart by ``"; "``; without weights and inputs' numbers."""
    call, shapes = EXAMPLES[operator]
    first = torch.float32 if recipe == "fp32" else torch.bfloat16
    rest = torch.bfloat16 if recipe == "bf16" or ("attention" in operator and recipe != "fp32") else torch.float32
    torch.manual_seed(0)
    inputs = [
        torch.randn(shape, dtype=rest if number else first, requires_grad=True) for number, shape in enumerate(shapes)
    ]
    autocast = torch.autocast("cpu", torch.bfloat16) if recipe == "autocast" else nullcontext()
    with cuda_rules() if cuda else nullcontext(), autocast:
        result = call(*inputs)
    return "; ".join(_of_nodes(result))


def _of_nodes(result: torch.Tensor) -> list[str]:
    nodes, waiting = set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            waiting += [following for following, _ in node.next_functions]
    lines = []
    for node in sorted(nodes, key=lambda one: one._sequence_nr()):
        for attribute in sorted(name for name in dir(node) if name.startswith("_saved_")):
            for tensor in tree_leaves(getattr(node, attribute)):
                if (
                    isinstance(tensor, torch.Tensor)
                    and tensor.dim()
                    and attribute not in ("_saved_weight", "_saved_bias")
                ):
                    shape = "x".join(map(str, tensor.shape))
                    name = f"{node.name().removesuffix('Backward0')}.{attribute.removeprefix('_saved_')}"
                    lines.append(f"{name} {str(tensor.dtype).removeprefix('torch.')} {shape}")
    return lines
