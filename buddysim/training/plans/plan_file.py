"""A plan as a file, and back.

The plan of a recorded step (``recorded = true``) has tables of blocks, copies, optimizer and weights, and holds for any
batch and machine. Those of other networks name layers; times of encodings and CONV algorithms are those of one batch
and machine.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.schema import checked
from buddysim.base.textfile import parse_toml, read_text, toml_text
from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.plan import Plan
from buddysim.training.networks.graph import Network
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.plans import layer_decisions, recorded_rules
from buddysim.training.plans.schema import DecisionFields, PlanFields, RecordedPlanFields

MAX_FILE_BYTES = 2**24


def plan_text(plan: Plan, network: Network) -> str:
    """Return the text of a plan's file.

    Parameters
    ----------
    network : that the plan is for, before it is recorded by it
    """
    about: dict[str, Any] = {"scheme": plan.scheme, "network": network.name}
    if plan.nothing_to_do:
        about["nothing_to_do"] = plan.nothing_to_do
    if not plan.as_recorded:
        return toml_text({**about, **layer_decisions.tables_of(plan, network)})
    assert isinstance(network, RecordedNetwork)
    tables = {} if plan.saving is None else recorded_rules.tables_of(plan.saving, network.blocks)
    numbers = {"memory_ratio": plan.memory_ratio, "time_factor": plan.time_factor}
    scaled = {name: value for name, value in numbers.items() if value != 1}
    return toml_text({**about, "recorded": True, "unlimited": plan.unlimited, **scaled, **tables})


@within_budget
def read_plan(path: str | os.PathLike[str], network: Network, scheme: str) -> Plan:
    """Return the plan of a file, for a network at its batch.

    Raises
    ------
    BuddysimError
        where it can't be read or isn't a plan of the network: the file, the table and its key, what was expected
    """
    text = read_text(path, "plan file", MAX_FILE_BYTES)
    try:
        return parse_plan(text, network, scheme)
    except BuddysimError as error:
        raise BuddysimError(f"{os.fspath(path)}: {error}") from None


def parse_plan(text: str, network: Network, scheme: str) -> Plan:
    """Return the plan of a file's text."""
    content = parse_toml(text)
    if content.get("recorded") is not True:
        fields: PlanFields = (decided := checked(DecisionFields, content))
        plan = layer_decisions.layer_plan(decided, network, scheme)
    else:
        fields = (recorded := checked(RecordedPlanFields, content))
        if not isinstance(network, RecordedNetwork):
            raise BuddysimError(f"recorded: {network.name} isn't recorded: expected a model's configuration")
        rules = recorded_rules.rules_of(recorded, network.blocks)
        saving = rules if rules != type(rules)() else None
        if saving is not None and network.record_with is None:
            raise BuddysimError(f"recorded: {network.name} can't be recorded again: expected a model's configuration")
        plan = Plan(
            scheme, {}, as_recorded=True, saving=saving, unlimited=fields.unlimited, allocator=LiveSetCounter(),
            memory_ratio=fields.memory_ratio, time_factor=fields.time_factor,
        )  # fmt: skip
    return replace(plan, notes=(f"as {fields.scheme} decided",), nothing_to_do=fields.nothing_to_do)
