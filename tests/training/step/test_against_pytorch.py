"""Two iterations from an empty optimizer on, against the allocations and frees that PyTorch reports, one by one."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from buddysim.training import recipes  # noqa: E402
from buddysim.training.architectures.read_config import read_config  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.options.config_options import ConfigOptions  # noqa: E402
from buddysim.training.recorded_step.run import record_step  # noqa: E402
from tests.training.step.scripts import (  # noqa: E402
    MasterScript,
    PlainScript,
    ScaledScript,
    update_in_backward,
)
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.compared import (  # noqa: E402
    events_of_measured,
    events_of_tape,
    first_difference,
)
from tests.training.transformers.conftest import _installed  # noqa: E402
from tests.training.transformers.measured import measure  # noqa: E402

__all__ = ["_installed"]

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]

OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, lr=0.1),
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
VARIANTS = {"foreach": {"foreach": True}, "fused": {"fused": True}, "for-loop": {"foreach": False}}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}
NAME = "LlamaForCausalLM"


def made(optimizer: str, variant: str) -> Any:
    return partial(OPTIMIZERS[optimizer], **VARIANTS[variant])


def assert_equal(recipe: str, optimizer: str, variant: str, script: Any, model: Any, **options: Any) -> None:
    """Compare two iterations of a model with what PyTorch's allocator reports of a script."""
    dtype = next(model.parameters()).dtype
    own = None if isinstance(script, MasterScript) or "optimizer_in_backward" in options else made(optimizer, variant)
    with cuda_rules("flash"):
        measured = measure(model, configs.inputs(NAME, dtype), own, steps=2, script=script)
    options_of_step = ConfigOptions(sequence=configs.TOKENS, recipe=recipe, optimizer_variant=variant, **options)
    tape = record_step(
        read_config(configs.CONFIGS[NAME]), options_of_step, recipes.REGISTRY.find(recipe), configs.BATCH, optimizer,
        iterations=2, steady=False,
    )  # fmt: skip
    assert first_difference(events_of_measured(measured), events_of_tape(tape)) == ""


def build(recipe: str) -> Any:
    return configs.build(NAME, "sdpa", torch.bfloat16 if recipe.startswith("bf16") else torch.float32)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("recipe", ["fp32", "bf16"])
def test_every_variant_of_an_optimizer(recipe: str, optimizer: str, variant: str):
    assert_equal(recipe, optimizer, variant, PlainScript(), build(recipe))


@pytest.mark.parametrize("micro_steps", [2, 3])
@pytest.mark.parametrize("recipe", ["fp32", "amp-bf16", "bf16"])
def test_accumulation(recipe: str, micro_steps: int):
    script = PlainScript(micro_steps, AUTOCAST.get(recipe))
    assert_equal(recipe, "adamw", "foreach", script, build(recipe), accumulation=micro_steps)


@pytest.mark.parametrize("micro_steps", [1, 2])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_gradient_scaler(optimizer: str, variant: str, micro_steps: int):
    script = ScaledScript(micro_steps, torch.float16)
    assert_equal("amp-fp16", optimizer, variant, script, build("amp-fp16"), accumulation=micro_steps)


@pytest.mark.parametrize("micro_steps", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_masters(variant: str, micro_steps: int):
    model = build("bf16-master")
    script = MasterScript(model, made("adamw", variant), micro_steps)
    assert_equal("bf16-master", "adamw", variant, script, model, accumulation=micro_steps)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("optimizer", ["momentum", "adamw"])
@pytest.mark.parametrize("recipe", ["fp32", "amp-bf16", "bf16"])
def test_the_optimizer_in_backward(recipe: str, optimizer: str, variant: str):
    model = build(recipe)
    update_in_backward(model, made(optimizer, variant))
    script = PlainScript(autocast=AUTOCAST.get(recipe))
    assert_equal(recipe, optimizer, variant, script, model, optimizer_in_backward=True)
