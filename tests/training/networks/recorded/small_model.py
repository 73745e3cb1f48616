"""A decoder of a few layers in the words of `training.autograd`, and records of its training steps."""

from __future__ import annotations

from buddysim.training.autograd import Module, Parameter, Tape, Tensor, functional
from buddysim.training.autograd.dtypes import DType, bfloat16, float32
from buddysim.training.networks.recorded.from_tape import network_from_tape
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.optimizers import find_optimizer
from buddysim.training.optimizers.traced import TracedOptimizer

BATCH, TOKENS, FEATURES, HEADS, HIDDEN, WORDS = 2, 64, 128, 4, 512, 1000


class Linear(Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = Parameter((outputs, inputs))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight)


class Embedding(Module):
    def __init__(self, words: int, features: int) -> None:
        super().__init__()
        self.weight = Parameter((words, features))

    def forward(self, numbers: Tensor) -> Tensor:
        return functional.embedding(numbers, self.weight)


class Norm(Module):
    """An RMSNorm that computes in single precision, as transformers writes it."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = Parameter((features,))

    def forward(self, x: Tensor) -> Tensor:
        dtype = x.dtype
        x = x.to(float32)
        variance = x.pow(2).mean(-1, True)
        x = x * functional.rsqrt(variance + 1e-6)
        return self.weight * x.to(dtype)


class Block(Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = Norm(FEATURES), Norm(FEATURES)
        self.q, self.k, self.v, self.o = (Linear(FEATURES, FEATURES) for _ in range(4))
        self.up, self.down = Linear(FEATURES, HIDDEN), Linear(HIDDEN, FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        residual = x
        x = self.norm1(x)
        batch, tokens, features = x.shape
        heads = [
            one(x).view(batch, tokens, HEADS, features // HEADS).transpose(1, 2) for one in (self.q, self.k, self.v)
        ]
        x = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = residual + self.o(x.transpose(1, 2).reshape(batch, tokens, features))
        return x + self.down(functional.silu(self.up(self.norm2(x))))


class SmallModel(Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embedding, self.norm, self.head = Embedding(WORDS, FEATURES), Norm(FEATURES), Linear(FEATURES, WORDS)
        self.layers = [Block() for _ in range(layers)]

    def forward(self, numbers: Tensor, labels: Tensor) -> Tensor:
        x = self.embedding(numbers)
        for layer in self.layers:
            x = layer(x)
        x = self.head(self.norm(x))
        return functional.cross_entropy(x.float().view(-1, WORDS), labels.view(-1))


def recorded(layers: int = 3, optimizer: str = "none", dtype: DType = bfloat16) -> RecordedNetwork:
    """The network of one training step."""
    with Tape(dtype) as tape:
        model = SmallModel(layers)
        rule = find_optimizer(optimizer)
        update = TracedOptimizer(rule, "" if rule is None else rule.VARIANTS[0], model.parameters())
        update.make_state()
        numbers, labels = tape.input((BATCH, TOKENS)), tape.input((BATCH, TOKENS))
        with tape.in_phase("forward"):
            loss = model(numbers, labels)
        loss.backward()
        del loss
        update.step()
        model.zero_grad()
    return network_from_tape(
        tape, "small", BATCH, "bf16" if dtype is bfloat16 else "fp32", options={"sequence": TOKENS}
    )
