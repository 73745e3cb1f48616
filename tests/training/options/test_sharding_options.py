"""Options of several GPUs: what contradicts, and what is refused, each in one line."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import float32
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.options.sharding_options import ShardingRequest


def test_options_make_one_request():
    assert ConfigOptions().sharding is None
    assert ConfigOptions(zero2=4, bucket=100).sharding == ShardingRequest("zero2", 4, bucket_mib=100)
    expected = ShardingRequest("fsdp", 8, gather_ahead=2, reshard=False, reduce_dtype=float32)
    assert ConfigOptions(fsdp=8, gather_ahead=2, reshard=False, reduce_format="fp32").sharding == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fsdp": 0}, "fsdp 0: expected 1 to 65536 GPUs"),
        ({"fsdp": 2, "ddp": 2}, "ddp and fsdp: expected one of them: each divides what the others hold whole"),
        ({"gather_ahead": 2}, "gather_ahead 2: expected with fsdp alone"),
        ({"bucket": 25, "fsdp": 2}, "bucket 25: expected with ddp or zero1 or zero2 or zero3 alone"),
        ({"reshard": False, "ddp": 2}, "reshard False: expected with fsdp alone"),
        ({"reduce_format": "fp8", "fsdp": 2}, "reduce_format 'fp8': expected one of fp32, bf16"),
        ({"tensor_parallel": 8}, "tensor_parallel 8: not simulated: use fsdp N, which divides the same weights"),
        ({"pipeline_parallel": 2}, "pipeline_parallel 2: not simulated: use fsdp N, or a config.json"),
        ({"context_parallel": 2}, "context_parallel 2: not simulated: use fsdp N with the sequence of one GPU"),
        ({"expert_parallel": 2}, "expert_parallel 2: not simulated: use fsdp N, which divides the experts' weights"),
    ],
)
def test_contradictions_and_refusals_are_one_line(options: dict[str, Any], message: str):
    with pytest.raises(BuddysimError) as caught:
        ConfigOptions(**options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
