"""What a request's machine decides about its network."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine.training import TrainingMachine
from buddysim.training.request import TrainingRequest


def machine_of(capability: str | None) -> TrainingMachine:
    """Return an H100 of another compute capability."""
    machine = TrainingMachine.load("h100-sxm")
    changed = machine.training.model_copy(update={"compute_capability": capability})
    return machine.model_copy(update={"training": changed})


def resolved(capability: str | None, **options: Any) -> Any:
    request = TrainingRequest.of(network="tinyllama-1.1b", machine=machine_of(capability), sequence=64, **options)
    return request.resolved().network


@pytest.mark.parametrize(
    ("capability", "attention"), [("7.5", "efficient"), ("8.0", "flash"), ("12.0", "flash"), (None, "flash")]
)
def test_flash_attention_is_taken_where_it_runs(capability: str | None, attention: str) -> None:
    assert resolved(capability).options["attention"] == attention


def test_the_selected_kernel_is_that_of_the_machine() -> None:
    assert resolved("7.0", attention="sdpa").options["attention"] == "efficient"
    assert resolved("9.0", attention="sdpa").options["attention"] == "sdpa"
    assert resolved("7.0", attention="eager").options["attention"] == "eager"
    assert resolved("7.0", padding=0.5).options["attention"] == "efficient"


def test_flash_attention_is_refused_where_it_does_not_run() -> None:
    text = (
        "compute capability 7.0, FlashAttention needs 8.0: expected sdpa, efficient or eager .PyTorch takes efficient"
    )
    with pytest.raises(BuddysimError, match=text):
        resolved("7.0", attention="flash")
