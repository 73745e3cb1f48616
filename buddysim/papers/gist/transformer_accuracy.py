"""Accuracy of a small vision transformer whose saved tensors are rounded, next to single precision: paired seeds.

Delayed reduction alone: the forward pass computes in single precision, and the backward pass reads what autograd saved,
rounded. Weights stay as they are. The paper has no transformer; this says what its formats do to one.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from buddysim.papers.gist.small_training import accuracy_of, train_batches
from buddysim.training.contents.observe_training import import_torch

CONDITIONS = ("fp32", "delayed-fp16", "delayed-fp10", "delayed-fp8")
LEARNING_RATE = 2e-3
WIDTH, HEADS, BLOCKS, SIDE, PATCH = 32, 4, 2, 14, 2
NETWORK = "vision transformer: 49 patches, 2 blocks of 32 features, 4 heads, GELU"


def train(condition: str, seed: int, iterations: int) -> dict[str, float]:
    """Train once: return the test accuracy in per cent, and the part of the saved bytes that is rounded.

    Parameters
    ----------
    condition : of `CONDITIONS`
    seed : of weights and of the order of images, the same for every condition
    """
    torch = import_torch("accuracy")
    torch.manual_seed(seed)
    module = _transformer(torch)
    optimizer = torch.optim.AdamW(module.parameters(), LEARNING_RATE)
    rounding = _Rounding(torch, module, condition.partition("-")[2])
    train_batches(torch, module, optimizer, iterations, rounding.hooks)
    return {"accuracy": accuracy_of(torch, module), "rounded": rounding.fraction}


class _Rounding:
    """Hooks that round saved tensors."""

    def __init__(self, torch: Any, module: Any, name: str) -> None:
        self.torch, self.name = torch, name
        self.weights = {one.untyped_storage().data_ptr() for one in module.parameters()}
        self.saved = self.rounded = 0

    @property
    def fraction(self) -> float:
        return self.rounded / self.saved if self.saved else 0.0

    def hooks(self) -> Any:
        if not self.name:
            return nullcontext()
        return self.torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)

    def _pack(self, tensor: Any) -> Any:
        from buddysim.gist import dpr

        size = tensor.numel() * tensor.element_size()
        self.saved += size
        if tensor.dtype != self.torch.float32 or tensor.untyped_storage().data_ptr() in self.weights:
            return tensor
        self.rounded += size
        values = tensor.detach().contiguous().numpy()
        return self.torch.from_numpy(dpr.rounded(values, self.name).reshape(values.shape))


def _transformer(torch: Any) -> Any:
    nn = torch.nn

    class AttentionBlock(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.attention = nn.LayerNorm(WIDTH), nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
            self.mlp = nn.Sequential(
                nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
            )

        def forward(self, x: Any) -> Any:
            normed = self.norm(x)
            x = x + self.attention(normed, normed, normed, need_weights=False)[0]
            return x + self.mlp(x)

    class Transformer(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(1, WIDTH, PATCH, PATCH)
            self.positions = nn.Parameter(0.02 * torch.randn(1, (SIDE // PATCH) ** 2, WIDTH))
            self.blocks = nn.Sequential(*(AttentionBlock() for _ in range(BLOCKS)))
            self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10))

        def forward(self, images: Any) -> Any:
            x = self.patches(images).flatten(2).transpose(1, 2) + self.positions
            return self.head(self.blocks(x).mean(1))

    return Transformer()
