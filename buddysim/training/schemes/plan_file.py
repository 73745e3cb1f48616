"""What a plan file decides: any mixture of recomputation, offload and compression, block by block or layer by layer.

`train --save-plan FILE` writes the plan of a scheme; files are read by `training.plans`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.option import FILE, Option
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import _algorithms
from buddysim.training.schemes._links import link_rate

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"plan": "what the file of --plan decides, block by block or layer by layer"}
FAMILY = "plan"
ORDER = 900
FACTS = SchemeFacts(
    source="a file (`--plan`)",
    moves="what the file says",
    costs="what the file says",
    applies="all networks",
    check="every scheme reads back as it decided (`tests/training/plans`)",
)
ACCURACY = "not measured"
REQUIRES_ONE_OF = ("plan",)
OPTIONS = {"plan": Option(str, "file with a plan, for scheme plan", FILE, None, "plan files")}


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """The plan of the file; the fastest CONV algorithms where it names none.

    Raises
    ------
    BuddysimError
        no file, or one that isn't a plan of the network
    """
    from buddysim.training.iteration.build import build
    from buddysim.training.plans.plan_file import read_plan

    path = options.extra.get("plan")
    if path is None:
        raise BuddysimError("scheme plan: no file is named: expected option plan (--plan)")
    read = read_plan(path, network, name)
    if read.as_recorded:
        return read
    complete = replace(read, algorithms={**_algorithms.fastest(network, batch, cost), **read.algorithms})
    try:
        build(network, batch, cost, complete, link_rate(machine, options.link), options.optimizer)
    except ValueError as error:
        raise BuddysimError(f"{path}: {error}") from None
    return complete
