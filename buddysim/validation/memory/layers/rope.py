"""``benchmark_rope.py``: queries and keys with tokens outside heads; gradients are returned, not added up.

The script makes the angles by a product before, so that cuBLAS has its workspace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.architectures.blocks.rotary import rotate_half
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, dtype_of, leaf

KERNEL = "rope"


class LigerRotation(Function):
    """The rotation in place, forward and backward (`ops/rope.py`)."""

    __slots__ = ()

    def compute(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return the rotated tensor, on the memory of the input."""
        x.storage.tape.launch("liger_rope", (x, cos, sin), (x,))
        self.save_for_backward(cos, sin)
        return x.detach()

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the rotated gradient, on its own memory."""
        self.tape.launch("liger_rope", (gradient, *self.saved), (gradient,))
        return gradient.detach(), None, None


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    return (x * cos) + (rotate_half(x) * sin)


def _script(config: Mapping[str, Any], liger: bool) -> LayerScript:
    tokens = config.get("seq_len") or config["T"]
    width = config.get("hidden_size") or config["H"]
    dtype, size = dtype_of(config), width // config["num_q_heads"]
    shapes = [(1, tokens, heads, size) for heads in (config["num_q_heads"], config["num_kv_heads"])]
    leaves = [leaf(shape, dtype) for shape in shapes]
    gradients = [F.ones(shape, dtype).transpose(1, 2) for shape in shapes]
    cos, sin = (active_tape().buffer((1, tokens, size), dtype) for _ in range(2))

    def run() -> list[Tensor]:
        turned = [one.transpose(1, 2) for one in leaves]
        return [LigerRotation.apply(one, cos, sin) if liger else _rotated(one, cos, sin) for one in turned]

    return LayerScript(run, lambda _: list(gradients), retains=True, dropped=leaves, workspaces=1)


SETUPS = {
    "liger": lambda config: _script(config, True),
    "huggingface": lambda config: _script(config, False),
}
