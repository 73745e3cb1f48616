"""CUDA's rules on the CPU against PyTorch's own lists, kernels and values."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules.differences import DeviceDifference, differences  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules.published_list import cuda_autocast_list  # noqa: E402
from tests.training.transformers.examples import saved  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Warning only once for all operators")

ROWS = differences()


def test_the_list_names_the_kernels_that_this_build_registers_for_cuda():
    registered = {
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
        if name.startswith("aten::")
    }
    named = {name.replace(".default", "") for name in cuda_autocast_list()}
    # Two products of cuDNN's, and a loss that autocast refuses, are registered apart from the published list.
    apart = {"cudnn_convolution", "cudnn_convolution_transpose", "binary_cross_entropy"}
    assert registered - named == apart
    assert {name for name in named - registered if name.partition(".")[0] not in registered} == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operator} {row.recipe}")
def test_a_row_of_the_table_is_as_measured(row: DeviceDifference):
    assert saved(row.operator, row.recipe, cuda=False) == row.cpu
    assert saved(row.operator, row.recipe, cuda=True) == row.cuda


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operator} {row.recipe}")
def test_a_row_cites_a_line_of_pytorch(row: DeviceDifference):
    if row.source.startswith("aten/"):
        pytest.skip("not in PyTorch's wheel")
    lines = (Path(torch.__file__).parents[1] / row.source).read_text(encoding="utf-8").splitlines()
    assert row.text in lines[row.line - 1]


def test_the_rules_end_with_their_context():
    before = saved("softmax", "autocast", cuda=False)
    assert saved("softmax", "autocast", cuda=True) != before
    assert saved("softmax", "autocast", cuda=False) == before


def heads(dtype: torch.dtype, count: int = 4) -> list[torch.Tensor]:
    torch.manual_seed(3)
    return [torch.randn(2, n, 7, 16, dtype=dtype, requires_grad=True) for n in (4, count, count)]


@pytest.mark.parametrize("attention", ["flash", "efficient"])
@pytest.mark.parametrize(("kv", "masked"), [(4, False), (4, True), (2, False)])
def test_attention_has_the_values_and_gradients_of_the_cpu(attention: str, kv: int, masked: bool):
    mask = torch.randn(2, 1, 7, 7, dtype=torch.bfloat16) if masked else None
    results = []
    for cuda in (False, True):
        inputs = heads(torch.bfloat16, kv)
        call = lambda: F.scaled_dot_product_attention(  # noqa: E731
            *inputs,  # noqa: B023
            attn_mask=mask,
            is_causal=not masked,
            enable_gqa=kv < 4,
        )
        if cuda:
            with cuda_rules(attention):
                out = call()
                out.float().square().sum().backward()
        else:
            out = call()
            out.float().square().sum().backward()
        results.append([out.detach(), *(one.grad for one in inputs)])
    for expected, simulated in zip(*results, strict=True):
        torch.testing.assert_close(simulated, expected, rtol=0.05, atol=0.05)


def test_a_gradient_of_a_mask_is_computed():
    inputs = heads(torch.float32)
    bias = torch.zeros(2, 4, 7, 7, requires_grad=True)
    F.scaled_dot_product_attention(*inputs, attn_mask=bias).square().sum().backward()
    expected, bias.grad = bias.grad, None
    with cuda_rules("efficient"):
        F.scaled_dot_product_attention(*inputs, attn_mask=bias).square().sum().backward()
    torch.testing.assert_close(bias.grad, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm_has_the_values_and_gradients_of_the_cpu(dtype: torch.dtype):
    results = []
    for cuda in (False, True):
        torch.manual_seed(5)
        x, w = (torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((5, 3, 8), (8,)))
        if cuda:
            with cuda_rules():
                F.rms_norm(x, (8,), w).square().sum().backward()
        else:
            F.rms_norm(x, (8,), w).square().sum().backward()
        results.append((x.grad, w.grad))
    for expected, simulated in zip(*results, strict=True):
        torch.testing.assert_close(simulated, expected, rtol=0.05 if dtype == torch.bfloat16 else 1e-4, atol=1e-2)


def cast_of(product: torch.Tensor) -> object:
    """The node that casts the weight of a product whose input wants no gradient."""
    transposed = product.grad_fn.next_functions[1][0]
    cast = transposed.next_functions[0][0]
    assert cast.name() == "ToCopyBackward0"
    return cast


def test_a_cast_weight_is_cached_until_autocast_ends():
    weight = torch.randn(4, 4, requires_grad=True)
    with cuda_rules():
        with torch.autocast("cpu", torch.bfloat16):
            first, second = (F.linear(torch.randn(2, 4), weight) for _ in range(2))
        with torch.autocast("cpu", torch.bfloat16):
            third = F.linear(torch.randn(2, 4), weight)
    assert cast_of(first) is cast_of(second)
    assert cast_of(third) is not cast_of(first)


def test_promotion_takes_the_widest_type():
    wide, narrow = torch.randn(3, requires_grad=True), torch.randn(3).bfloat16()
    with cuda_rules(), torch.autocast("cpu", torch.bfloat16):
        assert torch.addcmul(narrow, narrow, wide).dtype == torch.float32
        assert torch.dot(narrow, narrow).dtype == torch.bfloat16
        assert torch.norm(narrow).dtype == torch.float32
        assert torch.sum(narrow, dtype=torch.bfloat16).dtype == torch.bfloat16
