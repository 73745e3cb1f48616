"""Times of a whole layer of experts, as it was measured: its products, its feature maps, its other kernels.

A layer's rows have both products (gate and up in one, then down), the activation between them, and the weighted sum
behind; experts of `UNGATED` have no gate. Where experts are spread over ranks, Triton's kernel (vLLM) writes zeros for
the pairs of token and expert of other ranks, so feature maps of all pairs are moved. Other kernels move those of their
own experts, and every rank reads all tokens and writes a result for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from buddysim.training.calibration import fast
from buddysim.training.calibration.search import Bounds, fitted
from buddysim.training.cost.operators.constants import ExpertConstants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.products import ProductConstants
from buddysim.training.cost.operators.rows import MeasuredOperator

ALL_PAIRS = "triton"
"""The kernel that writes the feature maps of all pairs of token and expert."""

UNGATED = ((2688, 1856), (2048, 5120))
"""Hidden and inner size of layers without a gate; assumed. The published table does not say which layers have a gate;
these took three quarters of the others' time for their size."""

INNER_ACCESSES, UNGATED_ACCESSES, HIDDEN_ACCESSES = 5, 3, 2
"""Accesses to each element: both halves are written and read, the activation is written; the sum reads what is written.

The second product's reading of the activation is in its own time.
"""

TOKEN_ACCESSES = 2
"""Accesses to each token of all ranks: it is read before the first product, and its result is written."""

EXPERT_BOUNDS: Mapping[str, Bounds] = {
    "computing": Bounds(1.0, 0.3, 3.0),
    "moving": Bounds(1.0, 0.3, 3.0),
    "activations": Bounds(1.0, 0.2, 4.0),
    "floor_us": Bounds(20.0, 0.0, 300.0),
}
_HALF_BYTES = 2


def expert_extents(row: MeasuredOperator) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
    """Return batch, m, n and k of the two products of a layer of experts: gate and up in one, then down."""
    tokens, hidden, inner, per_token, experts, ranks = row.extents
    own = max(1, experts // ranks)
    pairs = max(1, tokens * per_token // ranks)
    active = min(own, pairs)
    rows = max(1, round(pairs / active))
    first = inner if (hidden, inner) in UNGATED else 2 * inner
    return (active, rows, first, hidden), (active, rows, hidden, inner)


def moved_bytes(row: MeasuredOperator) -> float:
    """Return the bytes of feature maps that a layer moves between its kernels."""
    tokens, hidden, inner, per_token, _, ranks = row.extents
    accesses = UNGATED_ACCESSES if (hidden, inner) in UNGATED else INNER_ACCESSES
    of_pair = _HALF_BYTES * (accesses * inner + HIDDEN_ACCESSES * hidden)
    if row.name == ALL_PAIRS:
        return tokens * per_token * of_pair
    return tokens * per_token / ranks * of_pair + tokens * _HALF_BYTES * TOKEN_ACCESSES * hidden


def layer_seconds(
    constants: ExpertConstants,
    gpu: GpuFigures,
    products: ProductConstants,
    bandwidth: float,
    rows: Sequence[MeasuredOperator],
) -> NDArray[np.float64]:
    """Return the seconds of layers of experts.

    Parameters
    ----------
    products : of plain products
    bandwidth : fraction of the peak bandwidth of element-wise kernels
    """
    parts = np.array([expert_extents(one) for one in rows], dtype=float)
    grouped = vars(constants.grouped(products))
    spent = sum(fast.products_seconds(grouped, gpu, "bf16", parts[:, index]) for index in (0, 1))
    moving = np.array([moved_bytes(one) for one in rows]) / (gpu.dram_bytes_per_s * bandwidth)
    return np.asarray(constants.floor_us / 1e6 + spent + constants.activations * moving)


def fit_experts(
    gpu: GpuFigures, products: ProductConstants, bandwidth: float, rows: Sequence[MeasuredOperator]
) -> ExpertConstants:
    """Return the constants of layers of experts, of rows of one kernel."""
    seconds = np.array([row.us for row in rows]) / 1e6

    def predict(tried: Mapping[str, float]) -> NDArray[np.float64]:
        return layer_seconds(ExpertConstants(**tried), gpu, products, bandwidth, rows)

    return ExpertConstants(**fitted(predict, seconds, EXPERT_BOUNDS))
