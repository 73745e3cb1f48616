"""The code of a plan in PyTorch, on tiny models: gradients of the plain run bit by bit, bytes as predicted."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from buddysim.base.errors import BuddysimError  # noqa: E402
from buddysim.training.fitting.assignment import Assignment  # noqa: E402
from buddysim.training.fitting.block_space import BlockSpace  # noqa: E402
from buddysim.training.fitting.fit import plan_space  # noqa: E402
from buddysim.training.fitting.torch_policy import policy_text  # noqa: E402
from buddysim.training.recorded_step.from_config import network_from_config  # noqa: E402
from buddysim.training.request import TrainingRequest  # noqa: E402
from tests.training.transformers import configs  # noqa: E402
from tests.training.transformers.test_schemes_in_torch import assert_equal, gradients  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Warning only once for all operators")]

NAMES = ["LlamaForCausalLM", "GPT2LMHeadModel", "Qwen3ForCausalLM"]


@cache
def space(name: str, allow: tuple[str, ...] = ()) -> BlockSpace:
    """The plans of a tiny model."""
    network = network_from_config(configs.CONFIGS[name], sequence=configs.TOKENS, recipe="fp32", attention="eager")
    made = plan_space(TrainingRequest.of(network=network, machine="h100-sxm", batch=configs.BATCH), allow)
    assert isinstance(made, BlockSpace)
    return made


def policy(name: str, assignment: Assignment) -> dict[str, Any]:
    """The names that the code defines."""
    names: dict[str, Any] = {}
    exec(compile(policy_text(space(name), assignment), "plan.py", "exec"), names)
    return names


def mixture(name: str, number: int) -> Assignment:
    """The first block has a choice, and each one behind it the next one."""
    count = len(space(name).choices)
    return Assignment(0, tuple((number + block) % count for block in range(len(space(name).groups))))


@pytest.mark.parametrize("name", NAMES)
def test_every_choice_gives_the_gradients_of_the_plain_run(name: str) -> None:
    plain = gradients(name)
    for number in range(len(space(name).choices)):
        code = policy(name, mixture(name, number))
        assert_equal(plain, gradients(name, prepare=code["apply_plan"]))


@pytest.mark.parametrize("name", NAMES)
def test_the_bytes_of_each_block_are_where_they_are_predicted(name: str) -> None:
    for number in range(len(space(name).choices)):
        assignment = mixture(name, number)
        code = policy(name, assignment)
        gradients(name, prepare=code["apply_plan"])
        plan = space(name).plan(assignment)
        tape = plan.recorded(space(name).network).tape  # type: ignore[attr-defined]
        moved = dict.fromkeys(space(name).groups, 0)
        for one in tape.operations:
            if one.copy is not None and one.copy.direction == "offload":
                block = next(path for path in moved if f"{one.scope}.".startswith(f"{path}."))
                moved[block] += one.copy.bytes
        assert code["HOST_BYTES"] == {block: size for block, size in moved.items() if size}


def test_what_has_no_code_is_refused() -> None:
    made = space("LlamaForCausalLM", ("compress-10",))
    lossy = len(made.choices) - 1
    with pytest.raises(BuddysimError, match="no number format of 10 bits"):
        policy_text(made, Assignment(0, (lossy,) * len(made.groups)))
    with pytest.raises(BuddysimError, match="single scheme"):
        policy_text(made, None)


@pytest.mark.parametrize("placement", [1, 2])
def test_placements_have_a_function_each(placement: int) -> None:
    code = policy("LlamaForCausalLM", Assignment(placement, (0,) * len(space("LlamaForCausalLM").groups)))
    assert "make_optimizer" in code if placement == 1 else "shard_to_host" in code
