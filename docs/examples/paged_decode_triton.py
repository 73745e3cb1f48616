"""Attention of one new token per conversation over pages of keys and values: a program for ``capture triton``.

Usage: paged_decode_triton.py [CONVERSATIONS]

The pool has pages for 128 tokens of each conversation, of which 16 to 128 are in use. Keys and values are random.
"""

import sys

import torch
import triton
import triton.language as tl

PAGE, PAGES, HEADS, D = 16, 8, 4, 64


@triton.jit
def decode(q, keys, values, table, lengths, o, scale, PAGES: tl.constexpr, PAGE: tl.constexpr, HEADS: tl.constexpr,
           D: tl.constexpr):  # fmt: skip
    conversation, head = tl.program_id(0), tl.program_id(1)
    column, token = tl.arange(0, D), tl.arange(0, PAGE)
    own = (conversation * HEADS + head) * D + column
    query = tl.load(q + own).to(tl.float32)
    length = tl.load(lengths + conversation)
    highest, total = float("-inf"), 0.0
    result = tl.zeros((D,), tl.float32)
    for number in range(tl.cdiv(length, PAGE)):
        page = tl.load(table + conversation * PAGES + number).to(tl.int64)
        at = ((page * HEADS + head) * PAGE + token[:, None]) * D + column[None, :]
        key = tl.load(keys + at).to(tl.float32)
        score = tl.sum(key * query[None, :], 1) * scale
        score = tl.where(number * PAGE + token < length, score, float("-inf"))
        now = tl.maximum(highest, tl.max(score, 0))
        weight = tl.exp(score - now)
        before = tl.exp(highest - now)
        total = total * before + tl.sum(weight, 0)
        value = tl.load(values + at).to(tl.float32)
        result = result * before + tl.sum(weight[:, None] * value, 0)
        highest = now
    tl.store(o + own, (result / total).to(tl.bfloat16))


def pool(caches, lengths, order):
    """Tokens in the pages that conversations have; the other pages are zero."""
    pages = torch.zeros(order.numel(), HEADS, PAGE, D, dtype=torch.bfloat16)
    for cache, length, own in zip(caches, lengths.tolist(), order.long(), strict=True):
        used = -(-length // PAGE)
        filled = torch.where(torch.arange(PAGES * PAGE)[:, None] < length, cache, 0).bfloat16()
        pages[own[:used]] = filled.unflatten(1, (PAGES, PAGE)).transpose(0, 1)[:used]
    return pages


def launch(q, keys, values, lengths, order):
    o = torch.zeros_like(q)
    shape = {"PAGES": PAGES, "PAGE": PAGE, "HEADS": HEADS, "D": D}
    decode[(len(q), HEADS)](q, keys, values, order, lengths, o, D**-0.5, **shape, num_warps=1)
    return o


def plan(conversations):
    """Lengths of conversations, and the pool's pages that each has, in the order of its tokens."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(PAGE, PAGES * PAGE + 1, (conversations,), generator=generator, dtype=torch.int32)
    return lengths, torch.randperm(conversations * PAGES, generator=generator).reshape(conversations, PAGES).int()


def main():
    conversations = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    torch.manual_seed(0)
    keys, values = torch.randn(2, conversations, HEADS, PAGES * PAGE, D).bfloat16()
    q = torch.randn(conversations, HEADS, D).bfloat16()
    lengths, order = plan(conversations)
    o = launch(q, pool(keys, lengths, order), pool(values, lengths, order), lengths, order)
    past = torch.arange(PAGES * PAGE) >= lengths[:, None, None]
    scores = torch.einsum("chd,chtd->cht", q.float(), keys.float()) * D**-0.5
    expected = torch.einsum("cht,chtd->chd", scores.masked_fill(past, -torch.inf).softmax(-1), values.float())
    print(f"{int(lengths.sum())} tokens; largest error: {float((o.float() - expected).abs().max()):.3f}")


if __name__ == "__main__":
    main()
