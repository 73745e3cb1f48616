"""Operators under the names that models call them by (``torch`` and ``torch.nn.functional``)."""

from __future__ import annotations

from buddysim.training.autograd.operators.activations import gelu, relu, sigmoid, silu, softplus, tanh
from buddysim.training.autograd.operators.arithmetic import add, div, mul, sub
from buddysim.training.autograd.operators.attention import scaled_dot_product_attention
from buddysim.training.autograd.operators.complex import polar, view_as_complex, view_as_real
from buddysim.training.autograd.operators.convolutions import conv1d, conv2d
from buddysim.training.autograd.operators.copies import cat, pad, stack, to_contiguous
from buddysim.training.autograd.operators.dropouts import dropout
from buddysim.training.autograd.operators.einsums import einsum
from buddysim.training.autograd.operators.fills import new_ones, ones, ones_like, zeros, zeros_like
from buddysim.training.autograd.operators.functions import abs_, clamp, cos, erf, exp, log, rsqrt, sin, sqrt, square
from buddysim.training.autograd.operators.gathers import gather, index, index_add, index_put_, scatter_
from buddysim.training.autograd.operators.grouped import grouped_mm
from buddysim.training.autograd.operators.indexing import embedding, where
from buddysim.training.autograd.operators.logic import (
    all_,
    bitwise_and,
    eq,
    floor,
    floor_divide,
    log1p,
    logical_not,
    max_,
    minimum,
    ne,
    tril,
    triu,
)
from buddysim.training.autograd.operators.losses import cross_entropy, nll_loss
from buddysim.training.autograd.operators.norms import layer_norm, rms_norm
from buddysim.training.autograd.operators.ordering import cumsum, diff, histc, max_values, sort, topk
from buddysim.training.autograd.operators.powers import power
from buddysim.training.autograd.operators.products import addmm, baddbmm, bmm, linear, matmul, mm
from buddysim.training.autograd.operators.ranges import (
    arange,
    empty,
    empty_like,
    full,
    full_like,
    new_empty,
    new_zeros,
)
from buddysim.training.autograd.operators.slice_writes import copy_into
from buddysim.training.autograd.operators.softmaxes import log_softmax, softmax
from buddysim.training.autograd.operators.triangular import solve_triangular
from buddysim.training.autograd.operators.writes import copy_, fill_, masked_fill_

__all__ = [
    "abs_",
    "add",
    "addmm",
    "all_",
    "arange",
    "baddbmm",
    "bitwise_and",
    "bmm",
    "cat",
    "clamp",
    "conv1d",
    "conv2d",
    "copy_",
    "copy_into",
    "cos",
    "cross_entropy",
    "cumsum",
    "diff",
    "div",
    "dropout",
    "einsum",
    "embedding",
    "empty",
    "empty_like",
    "eq",
    "erf",
    "exp",
    "fill_",
    "floor",
    "floor_divide",
    "full",
    "full_like",
    "gather",
    "gelu",
    "grouped_mm",
    "histc",
    "index",
    "index_add",
    "index_put_",
    "layer_norm",
    "linear",
    "log",
    "log1p",
    "log_softmax",
    "logical_not",
    "masked_fill_",
    "matmul",
    "max_",
    "max_values",
    "minimum",
    "mm",
    "mul",
    "ne",
    "new_empty",
    "new_ones",
    "new_zeros",
    "nll_loss",
    "ones",
    "ones_like",
    "pad",
    "polar",
    "power",
    "relu",
    "rms_norm",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter_",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "softplus",
    "solve_triangular",
    "sort",
    "sqrt",
    "square",
    "stack",
    "sub",
    "tanh",
    "to_contiguous",
    "topk",
    "tril",
    "triu",
    "view_as_complex",
    "view_as_real",
    "where",
    "zeros",
    "zeros_like",
]
