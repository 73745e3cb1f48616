"""Activation checkpointing of the package's own models against transformers' classes: saved tensors and events."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.utils import checkpoint  # noqa: E402

from buddysim.training.autograd.blocks import blocks_of  # noqa: E402
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules  # noqa: E402
from buddysim.training.options.checkpoint_rule import (  # noqa: E402
    CheckpointRule,
    StoredOperators,
    checkpoint_rules,
)
from buddysim.training.saving.checkpointed_blocks import checkpoint_blocks  # noqa: E402
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

#: T5's blocks share a bias, of which transformers asks a gradient under checkpointing alone.
NAMES = [name for name in configs.CONFIGS if name != "T5ForConditionalGeneration"]
#: Products of which every second is stored, without the fused attention that a dispatch mode doesn't see here.
SELECTIVE = StoredOperators(("mm", "bmm", "addmm"), every_second_product=True)


@pytest.fixture(autouse=True)
def _profiled(monkeypatch: pytest.MonkeyPatch):
    """The markers of the measurement are no operators of the model."""
    profiler = torch.ops.profiler
    marks = (profiler._record_function_enter_new, profiler._record_function_exit)
    ignored = {getattr(one, overload) for one in marks for overload in one.overloads()}
    monkeypatch.setattr(checkpoint, "SAC_IGNORED_OPS", checkpoint.SAC_IGNORED_OPS | ignored)


def contexts_of(stored: StoredOperators) -> Any:
    """The contexts of one region under a policy."""
    keeps = stored.policy()
    policies = checkpoint.CheckpointPolicy

    def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        return policies.MUST_SAVE if keeps(operator.overloadpacket.__name__) else policies.PREFER_RECOMPUTE

    return checkpoint.create_selective_checkpoint_contexts(policy)


def assert_equal(name: str, recipe: Any, attention: Any, rule: CheckpointRule) -> None:
    """Compare a step whose blocks are all recomputed with the same step of transformers' class, by CUDA's rules."""
    dtype = torch.bfloat16 if recipe == "bf16" else torch.float32
    model = configs.build(name, "eager" if attention == "eager" else "sdpa", dtype)
    keywords: dict[str, Any] = {"use_reentrant": False, "early_stop": rule.early_stop}
    if rule.stored is not None:
        keywords["context_fn"] = lambda: contexts_of(rule.stored)
    model.activation_checkpointing_enable(activation_checkpointing_kwargs=keywords)
    autocast = torch.autocast("cpu", torch.bfloat16) if recipe == "amp-bf16" else None
    with cuda_rules("efficient" if attention == "efficient" else "flash"):
        measured = measure(model, configs.inputs(name, dtype), steps=1, autocast=autocast)
    sequence = configs.tokens(name)

    def prepare(symbolic: Any) -> None:
        symbolic.name_scopes()
        checkpoint_blocks([block for _, block in blocks_of(symbolic)], [rule])

    tape = symbolic_step(configs.CONFIGS[name], configs.BATCH, sequence, recipe, attention, prepare)
    tape.saved = [one for one in tape.saved if one.node != "checkpoint"]
    assert list(differences_of(saved_of_measured(measured), saved_of_tape(tape))) == []
    assert first_difference(events_of_measured(measured), events_of_tape(tape)) == ""
    assert peak_of_tape(tape) == max(measured.curve())


def blocks_of_config(name: str) -> int:
    """How many blocks a class has in `configs`."""
    keys = configs.CONFIGS[name]
    return int(next(keys[key] for key in ("num_hidden_layers", "n_layer", "n_layers") if key in keys))


@pytest.mark.parametrize("recipe", ["fp32", "amp-bf16"])
@pytest.mark.parametrize("name", NAMES)
def test_recomputed_blocks_are_as_measured(name: str, recipe: str):
    (rule,) = checkpoint_rules("block", blocks_of_config(name))
    assert_equal(name, recipe, "eager", rule)


@pytest.mark.parametrize("recipe", ["bf16", "amp-bf16"])
@pytest.mark.parametrize("attention", ["efficient", "flash"])
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "GPT2LMHeadModel", "Phi3ForCausalLM"])
def test_fused_attention_in_recomputed_blocks_is_as_measured(name: str, attention: str, recipe: str):
    (rule,) = checkpoint_rules("block", blocks_of_config(name))
    assert_equal(name, recipe, attention, rule)


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("recipe", ["fp32", "amp-bf16"])
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "GPT2LMHeadModel", "Gemma2ForCausalLM", "MixtralForCausalLM"])
def test_stored_results_of_operators_are_as_measured(name: str, recipe: str, early_stop: bool):
    assert_equal(name, recipe, "eager", CheckpointRule(0, blocks_of_config(name) - 1, 1, SELECTIVE, early_stop))
