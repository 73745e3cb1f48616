"""Each operator alone against PyTorch: saved tensors, allocations in order with what lives, gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from tests.training.autograd.measured import Input, Program, assert_same  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("by_cudas_rules"),
    pytest.mark.filterwarnings("ignore:Warning only once for all operators", "ignore:Overriding"),
]

X = Input((3, 5, 8))
Y = Input((3, 5, 8))
ROW = Input((8,))
COLUMN = Input((3, 1, 8))
MATRIX = Input((6, 8))
BIAS = Input((6,))
FROZEN = Input((6, 8), requires_grad=False)
INPUT = Input((3, 5, 8), requires_grad=False)
WORDS = Input((3, 5), "int64", largest=6)
LABELS = Input((15,), "int64", largest=8)
MASK = Input((5, 8), "bool")
ROWS = Input((4,), "int64", largest=3)
COLUMNS = Input((3, 5, 2), "int64", largest=7)
ENDS = Input((3,), "int32", values=(2, 2, 7))
IMAGE = Input((2, 3, 8, 8))

#: By name: the program and its inputs. Results are summed to a loss.
PROGRAMS: dict[str, tuple[Program, tuple[Input, ...]]] = {
    "add": (lambda F, x, y: x + y, (X, Y)),
    "add, broadcast": (lambda F, x, y: x + y, (X, ROW)),
    "add a number": (lambda F, x: 1 + x + 2.5, (X,)),
    "add to itself": (lambda F, x: x + x, (X,)),
    "sub": (lambda F, x, y: x - y, (X, COLUMN)),
    "number minus": (lambda F, x: 1 - x, (X,)),
    "mul": (lambda F, x, y: x * y, (X, Y)),
    "mul, broadcast": (lambda F, x, y: x * y, (X, COLUMN)),
    "mul by a frozen": (lambda F, x, y: x * y, (X, INPUT)),
    "mul by a number": (lambda F, x: x * 0.5, (X,)),
    "div": (lambda F, x, y: x / y, (X, Y)),
    "div by a number": (lambda F, x: x / 3, (X,)),
    "div a number": (lambda F, x: 2 / x, (X,)),
    "neg": (lambda F, x: -x, (X,)),
    "pow": (lambda F, x: x.pow(3), (X,)),
    "square": (lambda F, x: x**2, (X,)),
    "rsqrt": (lambda F, x: F.rsqrt(x), (X,)),
    "sqrt": (lambda F, x: F.sqrt(x), (X,)),
    "exp": (lambda F, x: F.exp(x), (X,)),
    "log": (lambda F, x: F.log(x), (X,)),
    "sin": (lambda F, x: F.sin(x), (X,)),
    "cos": (lambda F, x: F.cos(x), (X,)),
    "erf": (lambda F, x: F.erf(x), (X,)),
    "abs": (lambda F, x: x.abs(), (X,)),
    "silu": (lambda F, x: F.silu(x), (X,)),
    "gelu": (lambda F, x: F.gelu(x), (X,)),
    "gelu, tanh": (lambda F, x: F.gelu(x, approximate="tanh"), (X,)),
    "relu": (lambda F, x: F.relu(x), (X,)),
    "tanh": (lambda F, x: F.tanh(x), (X,)),
    "sigmoid": (lambda F, x: F.sigmoid(x), (X,)),
    "softplus": (lambda F, x: F.softplus(x), (X,)),
    "clamp": (lambda F, x: F.clamp(x, min=-1, max=1), (X,)),
    "softmax": (lambda F, x: F.softmax(x, -1), (X,)),
    "softmax in fp32": (lambda F, x: F.softmax(x, -1, dtype=F.float32), (X,)),
    "softmax of a transpose": (lambda F, x: F.softmax(x.transpose(1, 2), -1), (X,)),
    "log_softmax": (lambda F, x: F.log_softmax(x, -1), (X,)),
    "sum": (lambda F, x: x.sum(), (X,)),
    "sum of a dimension": (lambda F, x: x.sum(1), (X,)),
    "sum, keepdim": (lambda F, x: x.sum(-1, keepdim=True), (X,)),
    "mean": (lambda F, x: x.mean(), (X,)),
    "mean of dimensions": (lambda F, x: x.mean((0, 2)), (X,)),
    "mean, keepdim": (lambda F, x: x.mean(-1, keepdim=True), (X,)),
    "mean of a transpose": (lambda F, x: x.transpose(0, 2).mean(-1), (X,)),
    "view": (lambda F, x: x.view(15, 8), (X,)),
    "reshape that copies": (lambda F, x: x.transpose(1, 2).reshape(24, 5), (X,)),
    "transpose": (lambda F, x: x.transpose(0, 1), (X,)),
    "permute": (lambda F, x: x.permute(2, 0, 1), (X,)),
    "contiguous": (lambda F, x: x.transpose(1, 2).contiguous(), (X,)),
    "expand": (lambda F, x: x.expand(3, 5, 8), (COLUMN,)),
    "expand, new dimension": (lambda F, x: x.expand(2, 3, 5, 8), (X,)),
    "unsqueeze": (lambda F, x: x.unsqueeze(1), (X,)),
    "squeeze": (lambda F, x: x.squeeze(1), (COLUMN,)),
    "slice": (lambda F, x: x[..., 2:6], (X,)),
    "slices with steps": (lambda F, x: x[:, 1::2, None], (X,)),
    "a slice of everything": (lambda F, x: x[:, 0:, :] * x[:], (X,)),
    "select": (lambda F, x: x[:, 0], (X,)),
    "split, one part used": (lambda F, x: x.split(3, -1)[0], (X,)),
    "split into sizes": (lambda F, x: F.cat(x.split([3, 5], -1)[::-1], -1), (X,)),
    "chunk": (lambda F, x: F.mul(*x.chunk(2, -1)), (X,)),
    "unbind": (lambda F, x: x.unbind(1)[2], (X,)),
    "cat": (lambda F, x, y: F.cat((x, y), -1), (X, Y)),
    "cat with a frozen": (lambda F, x, y: F.cat((x, y), 0), (X, INPUT)),
    "stack": (lambda F, x, y: F.stack((x, y), 1), (X, Y)),
    "repeat": (lambda F, x: x.repeat(2, 1, 3, 1), (X,)),
    "repeat_interleave": (lambda F, x: x.repeat_interleave(2, 1), (X,)),
    "pad": (lambda F, x: F.pad(x, (0, 3, 1, 0)), (X,)),
    "to and back": (lambda F, x: x.to(F.bfloat16).float(), (X,)),
    "matrices": (lambda F, x, y: x @ y, (MATRIX, Input((8, 4)))),
    "matrix of a transpose": (lambda F, x, y: x @ y.t(), (MATRIX, Input((4, 8)))),
    "batch times matrix": (lambda F, x, y: x @ y, (X, Input((8, 4)))),
    "batch times frozen matrix": (lambda F, x, y: x @ y, (X, Input((8, 4), requires_grad=False))),
    "transposed batch times frozen matrix": (
        lambda F, x, y: x.transpose(0, 1) @ y,
        (X, Input((8, 4), requires_grad=False)),
    ),
    "matrix times batch": (lambda F, x, y: x @ y, (Input((4, 5)), X)),
    "frozen matrix times batch": (lambda F, x, y: x @ y, (Input((4, 5), requires_grad=False), X)),
    "batches": (lambda F, x, y: x @ y.transpose(1, 2), (X, Y)),
    "batches, broadcast": (lambda F, x, y: x @ y, (Input((2, 3, 5, 8)), Input((3, 8, 4)))),
    "batches, one of one": (lambda F, x, y: x @ y, (X, Input((1, 8, 4)))),
    "baddbmm": (lambda F, b, x, y: F.baddbmm(b, x, y, beta=0.5, alpha=2.0), (Input((3, 5, 4)), X, Input((3, 8, 4)))),
    "linear": (lambda F, x, w: F.linear(x, w), (X, MATRIX)),
    "linear, bias": (lambda F, x, w, b: F.linear(x, w, b), (X, MATRIX, BIAS)),
    "linear of a matrix, bias": (lambda F, x, w, b: F.linear(x, w, b), (Input((7, 8)), MATRIX, BIAS)),
    "linear of a transpose, bias": (lambda F, x, w, b: F.linear(x.transpose(0, 1), w, b), (X, MATRIX, BIAS)),
    "linear, frozen weight": (lambda F, x, w: F.linear(x, w), (X, FROZEN)),
    "linear, frozen input": (lambda F, x, w: F.linear(x, w), (INPUT, MATRIX)),
    "tied linears": (lambda F, x, w: F.linear(F.linear(x, w), w.t()), (X, MATRIX)),
    "embedding": (lambda F, i, w: F.embedding(i, w), (WORDS, MATRIX)),
    "layer_norm": (lambda F, x, w, b: F.layer_norm(x, (8,), w, b), (X, ROW, ROW)),
    "layer_norm without parameters": (lambda F, x: F.layer_norm(x, (8,)), (X,)),
    "layer_norm of two dimensions": (lambda F, x, w: F.layer_norm(x, (5, 8), w), (X, Input((5, 8)))),
    "rms_norm": (lambda F, x, w: F.rms_norm(x, (8,), w), (X, ROW)),
    "dropout": (lambda F, x: F.dropout(x, 0.1), (X,)),
    "no dropout": (lambda F, x: F.dropout(x, 0.0) * 2, (X,)),
    "masked_fill": (lambda F, x, m: x.masked_fill(m, -1.0), (X, MASK)),
    "where": (lambda F, x, y, m: F.where(m, x, y), (X, Y, MASK)),
    "where, a number": (lambda F, x, m: F.where(m, x, 0.5), (X, MASK)),
    "comparison": (lambda F, x, y: F.where(x > y, x, y), (X, Y)),
    "index": (lambda F, x, i: F.index(x, i), (X, ROWS)),
    "index by two": (lambda F, x, i, j: F.index(x, i, j), (X, ROWS, ROWS)),
    "index_add": (lambda F, x, i, y: F.index_add(x, i, y), (X, ROWS, Input((4, 5, 8)))),
    "index_add to a frozen": (lambda F, x, i, y: F.index_add(x, i, y), (INPUT, ROWS, Input((4, 5, 8)))),
    "topk": (lambda F, x: F.topk(x, 2, -1)[0], (X,)),
    "grouped_mm": (
        lambda F, x, w, e: F.grouped_mm(x.to(F.bfloat16), w.to(F.bfloat16).transpose(-2, -1), e, (2, 0, 5)),
        (Input((7, 16)), Input((3, 8, 16)), ENDS),
    ),
    "conv2d": (lambda F, x, w, b: F.conv2d(x, w, b, (4, 4)), (IMAGE, Input((6, 3, 4, 4)), BIAS)),
    "conv2d of a frozen image": (
        lambda F, x, w, b: F.conv2d(x, w, b, (4, 4)),
        (Input((2, 3, 8, 8), requires_grad=False), Input((6, 3, 4, 4)), BIAS),
    ),
    "in place": (lambda F, x, y: (x * 2).add_(y).mul_(3.0).div_(2.0), (X, ROW)),
    "in place by what is trained": (lambda F, x, y: (x * 2).mul_(y) + (x + 1).div_(y), (X, ROW)),
    "divided by its sum": (lambda F, x: (x * 2).div_(x.sum(-1, keepdim=True)), (X,)),
    "cross_entropy": (lambda F, x, t: F.cross_entropy(x.view(15, 8), t), (X, LABELS)),
    "cross_entropy, summed": (lambda F, x, t: F.cross_entropy(x.view(15, 8), t, reduction="sum"), (X, LABELS)),
}

#: Of experts, sinks, recurrences and complex numbers.
RARER: dict[str, tuple[Program, tuple[Input, ...]]] = {
    "cat of images with channels next to each other": (
        lambda F, x: F.cat([x.view(3, 5, 4, 2).permute(0, 3, 1, 2)] * 2, -1).reshape(6, 40),
        (X,),
    ),
    "pad of such an image": (
        lambda F, x: F.pad(x.view(3, 5, 4, 2).permute(0, 3, 1, 2), (0, 0, 0, 2, 0, 1)).reshape(9, 28),
        (X,),
    ),
    "contiguous cast of such an image": (
        lambda F, x: F.to_contiguous(x.float().view(3, 5, 4, 2).permute(0, 3, 1, 2), F.float32),
        (X,),
    ),
    "gather": (lambda F, x, i: F.gather(x, i), (X, COLUMNS)),
    "scatter_": (lambda F, x, i: F.scatter_(F.zeros_like(x), i) * x, (X, COLUMNS)),
    "scatter_ of a source": (lambda F, x, i: F.scatter_(F.zeros_like(x), i, F.topk(x, 2)[0]) * 2, (X, COLUMNS)),
    "rotation of pairs": (
        lambda F, x, y: F.view_as_real(F.view_as_complex(x.float().reshape(3, 5, 4, 2)) * F.polar(y.float())),
        (X, Input((5, 4), requires_grad=False)),
    ),
    "parts of a new tensor": (
        lambda F, x, y: F.copy_into(F.copy_into(F.new_empty(x, (3, 5, 16)), x, -1, (0, 8)), y, -1, (8, 16)),
        (X, Y),
    ),
    "parts of another type": (
        lambda F, x, y: F.copy_into(F.copy_into(F.new_empty(x, (3, 5, 16)), x, -1, (0, 8)), y.float(), -1, (8, 16)),
        (X, Y),
    ),
    "max": (lambda F, x: F.max_values(x, -1), (X,)),
    "elements of a tensor of zeros": (
        lambda F, x, y: F.copy_into(F.copy_into(F.zeros_like(x), y.sum(1), 1, 1), x[:, 0], 1, 4),
        (X, Y),
    ),
    "einsum": (lambda F, x, y: F.einsum("bclhn,bcshn->bclsh", x, y), (Input((3, 2, 4, 2, 6)), Input((3, 2, 5, 2, 6)))),
    "einsum, one chunk": (
        lambda F, x, y: F.einsum("bclsh,bcshp->bclhp", x, y),
        (Input((3, 1, 4, 5, 2)), Input((3, 1, 5, 2, 6))),
    ),
    "einsum, results of the second first": (
        lambda F, x, y: F.einsum("bclhn,bclhp->bchpn", x, y),
        (Input((3, 2, 5, 2, 6)), Input((3, 2, 5, 2, 4))),
    ),
    "einsum, one of two summed": (
        lambda F, x, y: F.einsum("bzch,bzhpn->bchpn", x, y),
        (Input((3, 3, 3, 2)), Input((3, 3, 2, 5, 4))),
    ),
    "cumsum": (lambda F, x: F.cumsum(x, 1), (X,)),
    "triangular system": (
        lambda F, a, b: F.solve_triangular(a.float(), b.float()),
        (Input((2, 3, 5, 5)), Input((2, 3, 5, 4))),
    ),
    "triangle above": (
        lambda F, x: x.masked_fill(F.triu(F.ones((5, 5), dtype=F.bool), 1)[:, :4], 0.0),
        (Input((5, 4)),),
    ),
    "conv1d of each channel": (
        lambda F, x, w, b: F.conv1d(x.transpose(1, 2), w, b, 3)[:, :, :5],
        (X, Input((8, 1, 4)), Input((8,))),
    ),
    "conv1d without bias": (lambda F, x, w: F.conv1d(x.transpose(1, 2), w, None, 3), (X, Input((8, 1, 4)))),
    "grouped_mm of rows": (
        lambda F, x, w, e, b: F.grouped_mm(x.to(F.bfloat16), w.to(F.bfloat16), e, (2, 0, 5)).add_(b.to(F.bfloat16)),
        (Input((7, 16)), Input((3, 16, 8)), ENDS, Input((7, 8))),
    ),
}


@pytest.mark.parametrize("recipe", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_operator_is_pytorchs(name: str, recipe: Any):
    program, inputs = PROGRAMS[name]
    assert_same(lambda F, *tensors: _summed(program(F, *tensors)), inputs, recipe)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("name", RARER)
def test_rarer_operator_is_pytorchs(name: str, recipe: Any):
    program, inputs = RARER[name]
    assert_same(lambda F, *tensors: _summed(program(F, *tensors)), inputs, recipe)


def _summed(result: Any) -> Any:
    """A loss whose gradient isn't a view of one element."""
    return (result * result).sum()
