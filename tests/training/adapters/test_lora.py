"""Adapters next to every class's layers, against transformers' classes with LoRA of plain PyTorch modules."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from buddysim.training.adapters.apply import adapt  # noqa: E402
from buddysim.training.adapters.targets import targets  # noqa: E402
from buddysim.training.architectures.read_config import read_config  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.options.adapter_options import LoraRequest  # noqa: E402
from tests.training.adapters import torch_adapters  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.compared import (  # noqa: E402
    differences_of,
    events_of_measured,
    events_of_tape,
    first_difference,
    saved_of_measured,
    saved_of_tape,
)
from tests.training.transformers.measured import measure  # noqa: E402
from tests.training.transformers.symbolic import symbolic_step  # noqa: E402

RANK = 3
#: Modules of classes that have no layers of the default's names.
MODULES = {"DeepseekV3ForCausalLM": ("q_b_proj", "kv_b_proj"), "Mamba2ForCausalLM": ("in_proj",)}
NAMES = [name for name in configs.CONFIGS if name != "LlamaForCausalLM"]


def assert_equal(name: str, recipe: Any, library: str) -> None:
    """Compare a step with adapters at the default modules of a class, or at those of `MODULES`."""
    modules = MODULES.get(name, ())
    dtype = torch.bfloat16 if recipe == "bf16" else torch.float32
    config = configs.CONFIGS[name]
    sequence = configs.tokens(name)
    adapted: list[str] = []

    def prepare(model: Any) -> None:
        model_type = read_config(config).architecture.model_type
        adapted.extend(path.rpartition(".")[2] for path in targets(model, model_type, modules))
        adapt(model, model_type, LoraRequest(RANK, modules, library=library), fused=False)

    tape = symbolic_step(config, configs.BATCH, sequence, recipe, "eager", prepare)
    model = configs.build(name, "eager", dtype)
    torch_adapters.adapt(model, tuple(set(adapted)), RANK, library)
    autocast = torch.autocast("cpu", torch.bfloat16) if recipe == "amp-bf16" else None
    with cuda_rules("flash"):
        measured = measure(model, configs.inputs(name, dtype), steps=1, autocast=autocast)
    assert list(differences_of(saved_of_measured(measured), saved_of_tape(tape))) == []
    assert first_difference(events_of_measured(measured), events_of_tape(tape)) == ""
    assert tape.peak_bytes() == max(measured.curve())


@pytest.mark.parametrize("library", ["torchtune", "peft"])
@pytest.mark.parametrize("recipe", ["fp32", "bf16", "amp-bf16"])
def test_llama_saves_and_allocates_as_measured(recipe: str, library: str):
    assert_equal("LlamaForCausalLM", recipe, library)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torchtune", "peft"])
@pytest.mark.parametrize("recipe", ["fp32", "bf16", "amp-bf16"])
@pytest.mark.parametrize("name", NAMES)
def test_other_classes_save_and_allocate_as_measured(name: str, recipe: str, library: str):
    assert_equal(name, recipe, library)
