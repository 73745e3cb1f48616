"""Every pair of options of a recorded step is simulated, or refused in one line; kinds of memory add up to the peak."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine.training import TrainingMachine
from buddysim.training.cost import CostModel
from buddysim.training.driver import simulate_outcome
from buddysim.training.fit_check import FitChecks
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.outcome import IterationOutcome
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.request import make_options
from buddysim.training.result import TrainingResult

CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 160, "hidden_size": 128,
    "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 16,
}  # fmt: skip
#: Values by what they select; of one selection there is one value at a time.
VALUES: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("recipe", {"recipe": name}) for name in ("fp32", "amp-fp16", "amp-bf16", "bf16-master")),
    *(("optimizer", {"optimizer": name}) for name in ("none", "momentum", "adamw-8bit", "adamw-4bit")),
    *(("variant", {"optimizer_variant": name}) for name in ("fused", "for-loop", "torchao")),
    ("in backward", {"optimizer_in_backward": True}),
    ("adapters", {"lora": "4"}),
    ("adapters", {"lora": "4,all", "qlora": True}),
    ("adapters", {"lora": "4", "qlora": True, "lora_library": "peft"}),
    *(("GPUs", {name: 4}) for name in ("ddp", "fsdp", "zero1", "zero2", "zero3")),
    ("accumulation", {"accumulation": 3}),
    ("compile", {"compile": True}),
    ("scheme", {"scheme": "activation-checkpointing", "checkpoint": "selective"}),
    ("scheme", {"scheme": "offload-activations"}),
    ("scheme", {"scheme": "vdnn-all-p"}),
)
PAIRS = [
    (f"{a[0]} {'-'.join(map(str, a[1].values()))}, {b[0]} {'-'.join(map(str, b[1].values()))}", {**a[1], **b[1]})
    for a, b in combinations(VALUES, 2)
    if a[0] != b[0]
]
#: Words of refusals: the options that contradict each other, and schemes that are planned by layers.
REFUSED = (
    "optimizer_variant",
    "optimizer_in_backward",
    "not simulated with",
)


@cache
def machine() -> TrainingMachine:
    return TrainingMachine.load("h100-sxm")


@cache
def cost(precision: str) -> CostModel:
    return CostModel.load(machine(), None, None, precision)


def simulated(scheme: str = "eager", optimizer: str = "adamw", **options: Any) -> IterationOutcome:
    own = {name: options.pop(name) for name in list(options) if name in ConfigOptions.__dataclass_fields__}
    network = network_from_config(CONFIG, **own)
    return simulate_outcome(network, 2, machine(), scheme, cost=cost(network.precision), optimizer=optimizer, **options)


def check(options: dict[str, Any]) -> bool:
    """Whether options are simulated; then kinds add up, all of them are there, and no option lacks its effect."""
    try:
        outcome = simulated(**options)
    except BuddysimError as error:
        assert "\n" not in str(error)
        assert any(word in str(error) for word in REFUSED), error
        return False
    kinds = outcome.bytes_by_kind
    outside = kinds.pop("context"), kinds.pop("library_workspace"), kinds.pop("fragmentation")
    assert min(*outside, *kinds.values()) >= 0
    assert sum(kinds.values()) == outcome.all_layers.usage.peak_bytes
    assert sum(kinds.values()) + sum(outside[1:]) == outcome.placement.high_water
    assert outcome.time_ps >= outcome.baseline.time_ps > 0
    return True


@pytest.mark.slow
@pytest.mark.parametrize("options", [options for _, options in PAIRS], ids=[name for name, _ in PAIRS])
def test_a_pair_is_simulated_or_refused_in_one_line(options: dict[str, Any]) -> None:
    check(options)


@pytest.mark.parametrize("options", [options for _, options in VALUES], ids=[str(options) for _, options in VALUES])
def test_a_value_alone_is_simulated(options: dict[str, Any]) -> None:
    """But for those that need another optimizer."""
    assert check(options) or options == {"optimizer_variant": "torchao"}


@pytest.mark.parametrize("options", [{"fsdp": 4}, {"zero1": 4}, {"accumulation": 3}, {"optimizer_in_backward": True}])
def test_a_plan_by_layers_is_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(BuddysimError, match=f"^vdnn-all-p: not simulated with {name}: planned layer by layer: expect"):
        simulated("vdnn-all-p", **options)


def test_copies_of_compiled_code_are_those_of_inputs_of_blocks() -> None:
    with pytest.raises(BuddysimError, match=r"^offload-activations: not simulated with compile: offloads what eager"):
        simulated("offload-activations", compile=True)
    offloaded = simulated("offload-activations", compile=True, checkpoint="block", offload_min_bytes=0)
    eager = simulated("offload-activations", checkpoint="block", offload_min_bytes=0)
    assert offloaded.offload_bytes == eager.offload_bytes > 0


@pytest.mark.parametrize(
    ("options", "subjects"),
    [
        ({}, {"optimizer"}),
        ({"optimizer": "none"}, set()),
        ({"lora": "4,all", "qlora": True}, {"adapters", "quantised_weights"}),
        *[({name: 4}, {"sharding"}) for name in ("ddp", "fsdp", "zero1", "zero2", "zero3")],
        ({"accumulation": 3, "recipe": "amp-fp16"}, {"accumulation", "scaler"}),
        ({"optimizer_in_backward": True, "compile": True}, {"optimizer_in_backward", "compile"}),
        ({"recipe": "bf16-master"}, {"masters"}),
    ],
)
def test_what_an_option_assumes_is_in_the_provenance(options: dict[str, Any], subjects: set[str]) -> None:
    assumptions = TrainingResult.from_outcome(simulated(**options)).provenance["assumptions"]
    assert subjects <= set(assumptions)
    assert ("optimizer" in assumptions) == (options.get("optimizer") != "none")
    assert not any("FP32 in every precision" in assumptions.get(name, "") for name in ("optimizer",))


def test_a_scheme_that_records_anew_does_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search of the largest batch asks for the same record several times."""
    network = network_from_config(CONFIG)
    options = make_options(optimizer="adamw", checkpoint="block")
    checks = FitChecks(network, machine(), cost(network.precision), "activation-checkpointing", options)
    assert checks.check(2).fits
    counted = []
    monkeypatch.setattr("buddysim.training.recorded_step.from_config.record_step", lambda *_, **__: counted.append(1))
    assert checks.out_of_memory(2) is None
    assert checks.check(2).fits
    assert counted == []
