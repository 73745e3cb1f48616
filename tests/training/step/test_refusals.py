"""Options that contradict each other get one line."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import float16
from buddysim.training.recipes import Recipe
from buddysim.training.recorded_step.from_config import network_from_config
from tests.training.step.small_config import CONFIG


@pytest.mark.parametrize(
    ("options", "optimizer", "message"),
    [
        ({"recipe": "fp16"}, "adamw", "recipe fp16: fp16 gradients underflow without a scaler: expected amp-fp16"),
        ({"recipe": "fp16-master"}, "adamw", "recipe fp16-master: fp16 gradients underflow without a scaler"),
        ({"recipe": "amp-fp16", "optimizer_in_backward": True}, "adamw", "recipe amp-fp16: a scaler needs all grad"),
        ({"recipe": "bf16-master", "optimizer_in_backward": True}, "adamw", "recipe bf16-master: masters need all"),
        ({"accumulation": 2, "optimizer_in_backward": True}, "adamw", "accumulation 2: optimizer_in_backward drops"),
        ({"lora": "8", "optimizer_in_backward": True}, "adamw", "lora: frozen weights have no gradients"),
        ({"fsdp": 2, "optimizer_in_backward": True}, "adamw", "fsdp: gradients are reduced first"),
        ({"optimizer_in_backward": True}, "none", "optimizer_in_backward: no optimizer runs: expected one"),
        (
            {"optimizer_variant": "fused"},
            "adamw-8bit",
            "optimizer_variant 'fused': expected one of bitsandbytes, paged",
        ),
        ({"accumulation": 0}, "adamw", "accumulation 0: expected 1 to"),
    ],
)
def test_contradictions_get_one_line(options: dict[str, Any], optimizer: str, message: str) -> None:
    with pytest.raises(BuddysimError, match=f"^{message}") as error:
        network_from_config(CONFIG, sequence=8, **options).at(1, optimizer)
    assert "\n" not in str(error.value)


def test_a_recipe_in_fp16_needs_a_scaler() -> None:
    with pytest.raises(BuddysimError, match="recipe mine: fp16 without a gradient scaler underflows"):
        Recipe("mine", "", float16, "fp16")
