"""Times of described layers from constants of operators: on tensor cores, and on GPUs without timings of CONV.

Products take tiles and waves as a recorded model's do, fused attention its blocks, and what moves memory the fraction
of the bandwidth that this GPU's element-wise kernels reach. A kind of layer that reads elements again (pooling) is
slower by the same factor as on the Titan X that its fraction was measured on.

CONV kernels of tensor cores read and write channels last. Where feature maps have channels first, as PyTorch's do
unless a model is converted, the library copies what a pass reads and writes, and the filters, into the other order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from buddysim.training.cost.operators.attention import attention_seconds
from buddysim.training.cost.operators.memory_bound import memory_seconds
from buddysim.training.cost.operators.model import OperatorModel
from buddysim.training.cost.operators.products import product_seconds
from buddysim.training.cost.work import MatmulWork
from buddysim.training.networks.graph import Gemm
from buddysim.training.networks.recorded.work import AttentionWork

HALF = ("fp16", "bf16")
"""Number formats that fused attention has a kernel for."""


@dataclass(frozen=True)
class DescribedOperators:
    """Times of described layers by operators.

    Attributes
    ----------
    number_format : of the products' operands
    channels_last : whether feature maps lie in memory as CONV kernels of tensor cores read them
    """

    operators: OperatorModel
    number_format: str
    channels_last: bool = False

    def moving_s(self, moved: float, relative: float = 1.0) -> float:
        """Return the seconds of a kernel that moves `moved` bytes.

        Parameters
        ----------
        relative : fraction of the bandwidth over that of an element-wise kernel
        """
        return memory_seconds(self.operators.memory_constants, self.operators.gpu, "elementwise", moved / relative)

    def product_s(self, product: MatmulWork) -> float:
        """Return the seconds of a product on a GPU that is busy throughout."""
        extents = (product.count, ceil(product.rows), ceil(product.cols), ceil(product.inner))
        constants = self.operators.product_constants(self.number_format)
        return product_seconds(constants, self.operators.gpu, self.number_format, extents, sustained=True)

    def attention_s(self, scores: Gemm, batch: int, backward: bool) -> float:
        """Return the seconds of fused attention over all keys.

        Parameters
        ----------
        scores : product of queries and keys
        """
        heads = scores.count
        work = AttentionWork(batch, round(scores.m), round(scores.n), heads, heads, round(scores.k), causal=False)
        constants = self.operators.attention_constants("flash")
        rate = self.operators.attention_backward if backward else 0.0
        return attention_seconds(constants, self.operators.gpu, work, self.number_format, rate)

    def layout_s(self, moved: float) -> float:
        """Return the seconds of a CONV's copies between layouts: what a pass moves is read and written once more."""
        return 0.0 if self.channels_last else self.moving_s(2.0 * moved)
