"""The package's own models against the classes of transformers: saved tensors and events of a step, one by one."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from buddysim.training.networks.from_torch import network_from_torch  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.recorded_step.from_config import network_from_config  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.compared import (  # noqa: E402
    differences_of,
    events_of_measured,
    events_of_tape,
    first_difference,
    peak_of_tape,
    saved_of_measured,
    saved_of_tape,
)
from tests.training.transformers.measured import measure  # noqa: E402
from tests.training.transformers.symbolic import symbolic_step  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]

RECIPES = ("fp32", "bf16", "amp-bf16")

#: Classes whose attention PyTorch's flash kernel can't take: a window is a mask to PyTorch, and so is a bias. What
#: transformers does there needs the package of FlashAttention, which needs a GPU.
WITHOUT_FLASH = (*configs.EAGER_ONLY, "MistralForCausalLM", "Gemma3ForCausalLM", "T5ForConditionalGeneration")


def assert_equal(name: str, recipe: Any, attention: Any) -> None:
    """Compare a step of a class with the same step of transformers' class, by CUDA's rules."""
    dtype = torch.bfloat16 if recipe == "bf16" else torch.float32
    model = configs.build(name, "eager" if attention == "eager" else "sdpa", dtype)
    autocast = torch.autocast("cpu", torch.bfloat16) if recipe == "amp-bf16" else None
    with cuda_rules("efficient" if attention == "efficient" else "flash"):
        measured = measure(model, configs.inputs(name, dtype), steps=1, autocast=autocast)
    tape = symbolic_step(configs.CONFIGS[name], configs.BATCH, configs.tokens(name), recipe, attention)
    assert list(differences_of(saved_of_measured(measured), saved_of_tape(tape))) == []
    assert first_difference(events_of_measured(measured), events_of_tape(tape)) == ""
    assert peak_of_tape(tape) == max(measured.curve())


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", configs.CONFIGS)
def test_eager_attention_is_as_measured(name: str, recipe: str):
    assert_equal(name, recipe, "eager")


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", [name for name in configs.CONFIGS if name not in configs.EAGER_ONLY])
def test_efficient_attention_is_as_measured(name: str, recipe: str):
    assert_equal(name, recipe, "efficient")


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", [name for name in configs.CONFIGS if name not in WITHOUT_FLASH])
def test_flash_attention_is_as_measured(name: str, recipe: str):
    assert_equal(name, recipe, "flash")


@pytest.mark.parametrize("optimizer", ["none", "sgd", "momentum", "adam", "adamw"])
def test_the_networks_of_a_class_and_of_its_configuration_are_one(optimizer: str):
    one = torch.zeros(configs.TOKENS, dtype=torch.long)
    inputs = {"input_ids": one, "labels": one}
    traced = network_from_torch(configs.build("LlamaForCausalLM", "sdpa"), inputs, recipe="bf16")
    described = network_from_config(
        configs.CONFIGS["LlamaForCausalLM"], sequence=configs.TOKENS, recipe="bf16", attention="flash"
    )
    tapes = [network.at(configs.BATCH, optimizer).tape for network in (described, traced)]
    assert list(differences_of(*map(saved_of_tape, tapes))) == []
    assert first_difference(*map(events_of_tape, tapes)) == ""
    assert traced.parameter_shapes() == described.parameter_shapes()
    for layer, other in zip(described.at(configs.BATCH).layers, traced.at(configs.BATCH).layers, strict=True):
        assert layer.output_bytes == other.output_bytes
        if layer.name != "loss":  # which a script has outside of its modules
            assert layer.name == other.name
            for pass_ in ("forward", "backward"):
                works = [[(w.products, w.kind, w.attention) for w in each.work(pass_)] for each in (layer, other)]
                assert works[0] == works[1], layer.name
