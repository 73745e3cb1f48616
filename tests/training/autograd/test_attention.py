"""Scaled dot-product attention by each kernel against PyTorch by CUDA's rules."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from tests.training.autograd.measured import Input, Program, assert_same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Warning only once for all operators", "ignore:Overriding")

HEADS = (Input((2, 4, 5, 8)),) * 3
GROUPED = (Input((2, 4, 5, 8)), *(Input((2, 2, 5, 8)),) * 2)
ODD = (Input((2, 4, 5, 12)),) * 3
LONGER = (Input((2, 4, 5, 8)), *(Input((2, 4, 7, 8)),) * 2)


def attend(F: Any, q: Any, k: Any, v: Any, *mask: Any, **keywords: Any) -> Any:
    """Attention of tokens in front of heads, as models call it."""
    q, k, v = (one * 2 for one in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, *mask, **keywords)
    return out.transpose(1, 2).contiguous().reshape(2, 5, -1)


PROGRAMS: dict[str, tuple[Program, tuple[Input, ...]]] = {
    "causal": (lambda F, *x: attend(F, *x, is_causal=True), HEADS),
    "full": (lambda F, *x: attend(F, *x), HEADS),
    "of tokens before heads": (
        lambda F, *x: attend(F, *[one.transpose(1, 2) for one in x], is_causal=True),
        (Input((2, 5, 4, 8)),) * 3,
    ),
    "of parts of one product": (
        lambda F, x: attend(F, *x.view(2, 5, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0), is_causal=True),
        (Input((2, 5, 96)),),
    ),
    "heads of odd size": (lambda F, *x: attend(F, *x, is_causal=True), ODD),
    "more keys": (lambda F, *x: attend(F, *x), LONGER),
    "grouped": (lambda F, *x: attend(F, *x, is_causal=True, enable_gqa=True), GROUPED),
    "grouped, masked": (lambda F, *x: attend(F, *x, enable_gqa=True), (*GROUPED, Input((2, 1, 5, 5), "bool"))),
    "truth values": (lambda F, *x: attend(F, *x), (*HEADS, Input((2, 1, 5, 5), "bool"))),
    "aligned truth values": (
        lambda F, *x: attend(F, *x),
        (Input((2, 4, 5, 8)), *(Input((2, 4, 16, 8)),) * 2, Input((2, 1, 5, 16), "bool")),
    ),
    "a mask of numbers": (lambda F, *x: attend(F, *x), (*HEADS, Input((2, 1, 5, 5), requires_grad=False))),
    "a bias that is trained": (lambda F, *x: attend(F, *x), (*HEADS, Input((1, 4, 5, 5)))),
    "queries alone trained": (
        lambda F, *x: attend(F, *x, is_causal=True),
        (Input((2, 4, 5, 8)), *(Input((2, 4, 5, 8), requires_grad=False),) * 2),
    ),
    "of itself": (lambda F, x: F.scaled_dot_product_attention(x, x, x), HEADS[:1]),
    "keys that are values": (lambda F, q, k: F.scaled_dot_product_attention(q, k, k), HEADS[:2]),
    "dropout": (lambda F, *x: attend(F, *x, is_causal=True, dropout_p=0.1), HEADS),
}


@pytest.mark.parametrize("attention", ["flash", "efficient"])
@pytest.mark.parametrize("recipe", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_attention_is_pytorchs(name: str, recipe: Any, attention: Any):
    program, inputs = PROGRAMS[name]
    with cuda_rules(attention):
        assert_same(lambda F, *x: (program(F, *x) * 2).sum(), inputs, recipe, attention)
