"""Random small programs: instructions that both PyTorch and the symbolic one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from buddysim.training.autograd import Tape, Tensor, functional
from buddysim.training.autograd.dtypes import DTYPES, bool8
from buddysim.training.autograd.module import Parameter
from tests.training.autograd.measured import Input, Recipe

LARGEST = 400

#: Of one tensor that is of floating point; None where its shape doesn't suit.
UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "silu": lambda F, x: F.silu(x),
    "gelu": lambda F, x: F.gelu(x),
    "tanh": lambda F, x: F.tanh(x),
    "exp": lambda F, x: F.exp(x),
    "relu": lambda F, x: F.relu(x),
    "neg": lambda F, x: -x,
    "square": lambda F, x: x.pow(2),
    "softmax": lambda F, x: F.softmax(x, -1),
    "softmax in fp32": lambda F, x: F.softmax(x, -1, dtype=F.float32),
    "dropout": lambda F, x: F.dropout(x, 0.5),
    "contiguous": lambda F, x: x.contiguous(),
    "clone": lambda F, x: x.clone(),
    "float": lambda F, x: x.float(),
    "half": lambda F, x: x.to(F.bfloat16),
    "twice": lambda F, x: x * 2,
    "layer_norm": lambda F, x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda F, x: F.rms_norm(x, x.shape[-1:]),
    "mean": lambda F, x: x.mean(-1, keepdim=True),
    "sum": lambda F, x: x.sum(0),
    "transpose": lambda F, x: x.transpose(0, -1),
    "transpose of inner": lambda F, x: x.transpose(-1, -2),
    "permute": lambda F, x: x.permute(*range(1, len(x.shape)), 0),
    "unsqueeze": lambda F, x: x.unsqueeze(1),
    "squeeze": lambda F, x: x.squeeze(0),
    "flatten": lambda F, x: x.flatten(0, 1),
    "flatten the last": lambda F, x: x.flatten(-2, -1),
    "halves": lambda F, x: F.cat(x.chunk(2, -1)[::-1], -1),
    "half of it": lambda F, x: x.chunk(2, -1)[0],
    "first": lambda F, x: x[0],
    "slice": lambda F, x: x[..., 1:],
    "steps": lambda F, x: x[::2],
    "alias": lambda F, x: x[:, ...],
    "repeat": lambda F, x: x.repeat_interleave(2, 0),
    "expand": lambda F, x: x.unsqueeze(0).expand(2, *x.shape),
    "cut": lambda F, x: F.pad(x, (0, -1)),
    "abs": lambda F, x: x.abs(),
    "reciprocal": lambda F, x: 1 / (x * x + 1),
    "normalised": lambda F, x: x * F.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1.0),
    "masked": lambda F, x: x.masked_fill(x > 0, -1.0),
    "clamp": lambda F, x: F.clamp(x, min=-1.0),
    "choice": lambda F, x: F.where(x > 0, x, 0.5),
    "parts": lambda F, x: F.stack(x.split(1, -1), 0),
    "unbound": lambda F, x: F.add(*(2 * x.unbind(0))[:2]),
    "log_softmax": lambda F, x: F.log_softmax(x, -1),
    "sum of dimensions": lambda F, x: x.sum((0, 1), keepdim=True),
    "gated": lambda F, x: F.mul(*(F.silu(x).chunk(2, -1))),
    "times itself": lambda F, x: x @ x.transpose(-1, -2),
    "largest": lambda F, x: F.topk(x, 1, -1)[0],
    "pad": lambda F, x: F.pad(x, (1, 2)),
    "add in place": lambda F, x: (x * 1.5).add_(1.0),
    "scale in place": lambda F, x: (x + 1.5).mul_(0.5),
    "divide in place": lambda F, x: (x + 1.5).div_(3.0),
}

BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda F, x, y: x + y,
    "sub": lambda F, x, y: x - y,
    "mul": lambda F, x, y: x * y,
    "div": lambda F, x, y: x / y,
    "matmul": lambda F, x, y: x @ y,
    "matmul of a transpose": lambda F, x, y: x @ y.transpose(-1, -2),
    "linear": lambda F, x, y: F.linear(x, y),
    "linear of rows": lambda F, x, y: F.linear(x, y, y[:, 0] if len(y.shape) == 2 else None),
    "attention": lambda F, x, y: F.scaled_dot_product_attention(x, y, y),
    "causal attention": lambda F, x, y: F.scaled_dot_product_attention(y, x, y, is_causal=True),
    "divided by the sum": lambda F, x, y: (x + y).div_(y.sum()),
    "cat": lambda F, x, y: F.cat((x, y), 0),
    "stack": lambda F, x, y: F.stack((x, y), -1),
    "where": lambda F, x, y: F.where(x > y, x, y),
    "add in place": lambda F, x, y: (x * 1.5).add_(y),
    "mul in place": lambda F, x, y: (x + 1.5).mul_(y),
}


@dataclass(frozen=True)
class RandomProgram:
    """Leaves, and instructions: the name of an operator, which tensors it reads, which are dropped after it."""

    inputs: tuple[Input, ...]
    instructions: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    results: tuple[int, ...]

    def __call__(self, F: Any, *leaves: Any) -> Any:
        tensors = dict(enumerate(leaves))
        for number, (name, operands, dropped) in enumerate(self.instructions, len(leaves)):
            operator: Any = UNARY[name] if len(operands) == 1 else BINARY[name]
            tensors[number] = operator(F, *[tensors[one] for one in operands])
            for one in dropped:
                del tensors[one]
        terms = [(tensors[one].float() * tensors[one].float()).sum() for one in self.results]
        loss = terms[0]
        for term in terms[1:]:
            loss = loss + term
        return loss


@st.composite
def random_programs(draw: Any, recipe: Recipe) -> RandomProgram:
    """Programs whose shapes and types suit each other: an instruction that doesn't is left out."""
    extents = st.sampled_from([1, 2, 4, 6])
    inputs = tuple(
        Input(tuple(draw(st.lists(extents, min_size=2, max_size=4))), requires_grad=draw(st.booleans()) or number == 0)
        for number in range(draw(st.integers(1, 4)))
    )
    namespace = SimpleNamespace(**{**vars(functional), **DTYPES, "bool": bool8})
    instructions: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
    with Tape() as tape:
        tensors: dict[int, Tensor] = {}
        read: set[int] = set()
        for number, one in enumerate(inputs):
            dtype = DTYPES[one.type_in(recipe)]
            tensors[number] = Parameter(one.shape, dtype) if one.is_trained else tape.input(one.shape, dtype)
        for _ in range(draw(st.integers(4, 30))):
            arity = draw(st.integers(1, 2))
            name = draw(st.sampled_from(sorted(UNARY if arity == 1 else BINARY)))
            operands = tuple(draw(st.sampled_from(sorted(tensors))) for _ in range(arity))
            result = _result(namespace, name, [tensors[one] for one in operands])
            if result is None:
                continue
            number = len(inputs) + len(instructions)
            tensors[number] = result
            read |= set(operands)
            droppable = [one for one in sorted(tensors) if one >= len(inputs) and one in read]
            dropped = tuple(one for one in droppable if draw(st.integers(0, 5)) == 0)
            for one in dropped:
                del tensors[one]
            instructions.append((name, operands, dropped))
        # All that nothing has read, so that the loss depends on every operator.
        results = tuple(
            one for one, tensor in tensors.items() if tensor.requires_grad and (one not in read or one == 0)
        )
    return RandomProgram(inputs, tuple(instructions), results)


def _result(namespace: Any, name: str, operands: list[Tensor]) -> Tensor | None:
    """What an operator returns; None where PyTorch might refuse its operands, or the result is large."""
    if min(len(one.shape) for one in operands) < 2:
        return None
    try:
        operator: Any = UNARY[name] if len(operands) == 1 else BINARY[name]
        result: Tensor = operator(namespace, *operands)
    except Exception:
        return None
    return result if 2 <= len(result.shape) <= 5 and 0 < result.numel() <= LARGEST else None
