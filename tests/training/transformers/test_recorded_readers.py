"""The package's own models against transformers' classes as the package records them: two ways, one tape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import buddysim  # noqa: E402
from buddysim.training.architectures.read_config import content_of  # noqa: E402
from buddysim.training.autograd import Tape  # noqa: E402
from buddysim.training.options.checkpoint_rule import CheckpointRule  # noqa: E402
from buddysim.training.options.config_options import ConfigOptions  # noqa: E402
from buddysim.training.options.offload_rule import OffloadRule  # noqa: E402
from buddysim.training.options.optimizer_offload import OptimizerOffload  # noqa: E402
from buddysim.training.options.saving_rules import SavingRules  # noqa: E402
from buddysim.training.options.weights_offload import WeightsOffload  # noqa: E402
from buddysim.training.recorded_step.from_config import ConfigNetwork, network_from_config  # noqa: E402
from buddysim.training.recorded_step.library_model import library_config  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.compared import differences_of, peak_of_tape, saved_of_tape  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def both(name: str, **options: Any) -> tuple[Any, ConfigNetwork]:
    """Return a class as the package reads it, and as it records transformers'."""
    content = {**configs.CONFIGS[name], "architectures": [name]}
    attention = "eager" if name in configs.EAGER_ONLY else "sdpa"
    options = {"sequence": configs.tokens(name), "attention": attention, **options}
    recorded = library_config(content_of(content), None)
    return network_from_config(content, **options), ConfigNetwork(recorded, ConfigOptions(**options))


def check_equal(own: Tape, other: Tape) -> None:
    assert list(differences_of(saved_of_tape(other), saved_of_tape(own))) == []
    assert peak_of_tape(own) == peak_of_tape(other)


@pytest.mark.parametrize("recipe", ["fp32", "amp-bf16"])
@pytest.mark.parametrize("name", configs.CONFIGS)
def test_a_reader_and_the_recorded_class_have_one_tape(name: str, recipe: str) -> None:
    """With weights in bf16 a class that isn't cast as a whole has rotary frequencies and DeepSeek's routers in fp32."""
    read, recorded = both(name, recipe=recipe)
    assert read.parameters == recorded.parameters
    check_equal(read.at(configs.BATCH).tape, recorded.at(configs.BATCH).tape)


@pytest.mark.parametrize(
    ("options", "optimizer"),
    [
        ({"lora": "8"}, "adamw"),
        ({"lora": "8", "lora_library": "peft"}, "adamw"),
        ({"lora": "8", "lora_library": "peft", "qlora": True}, "adamw"),
        ({"fsdp": 4}, "momentum"),
        ({"zero2": 4}, "adamw"),
        ({"zero3": 4}, "adamw"),
        ({"ddp": 4, "accumulation": 4}, "adamw"),
        ({"optimizer_in_backward": True}, "adamw"),
        ({"recipe": "amp-fp16"}, "adamw-8bit"),
        ({"compile": True}, "none"),
    ],
)
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Qwen3NextForCausalLM", "T5ForConditionalGeneration"])
def test_options_do_the_same_to_both(name: str, options: dict[str, Any], optimizer: str) -> None:
    read, recorded = both(name, **{"recipe": "amp-bf16", **options})
    check_equal(read.at(configs.BATCH, optimizer).tape, recorded.at(configs.BATCH, optimizer).tape)


@pytest.mark.parametrize(
    "rules",
    [
        SavingRules(checkpoints=(CheckpointRule(0, 1),)),
        SavingRules(offload=OffloadRule()),
        SavingRules(optimizer=OptimizerOffload()),
        SavingRules(weights=WeightsOffload()),
    ],
    ids=["checkpoints", "offload", "optimizer", "weights"],
)
def test_what_is_done_with_saved_tensors_is_the_same(rules: SavingRules) -> None:
    read, recorded = both("LlamaForCausalLM", recipe="amp-bf16")
    own, other = (one.at(configs.BATCH, "adamw").record_with(rules).tape for one in (read, recorded))
    check_equal(own, other)


def test_nothing_but_the_way_in_knows_recorded_classes() -> None:
    """No option can ask which reader a model came from: none imports what tells them apart."""
    package = Path(buddysim.__file__).parent
    knowing = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "training.recorded_class" in path.read_text() or "recorded_step.library_model" in path.read_text()
    }
    own = {one for one in knowing if one.startswith("training/recorded_class/")}
    assert knowing - own == {"training/recorded_step/from_config.py", "training/recorded_step/library_model.py"}
