"""RMSNorm with a residual as a Triton kernel, on tensors of the CPU: a program for ``capture triton``.

Usage: rms_norm_triton.py [ROWS]
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, residual, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    value = tl.load(x + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(residual + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(residual + row * columns + column, value.to(tl.bfloat16), mask=mask)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + eps)
    result = value * scale * tl.load(weight + column, mask=mask).to(tl.float32)
    tl.store(out + row * columns + column, result.to(tl.bfloat16), mask=mask)


def main() -> None:
    rows, columns = int(sys.argv[1]) if len(sys.argv) > 1 else 256, 2048
    torch.manual_seed(0)
    x = torch.randn(rows, columns).bfloat16()
    residual = torch.randn(rows, columns).bfloat16()
    expected = x.float() + residual.float()
    expected = expected * torch.rsqrt(expected.pow(2).mean(1, keepdim=True) + 1e-5)
    weight = torch.ones(columns, dtype=torch.bfloat16)
    out = torch.empty_like(x)
    rms_norm[(rows,)](x, residual, weight, out, columns, 1e-5, BLOCK=2048, num_warps=8)
    print(f"largest error: {float((out.float() - expected).abs().max()):.3f}")


if __name__ == "__main__":
    main()
