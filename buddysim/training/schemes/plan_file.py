"""What a plan file decides: any mixture of recomputation, offload and compression, block by block or layer by layer.

`train --save-plan FILE` writes the plan of a scheme; files are read by `training.plans`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.option import FILE
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.option import Option
from buddysim.training.plans.plan_file import read_plan

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"plan": "what the file of --plan decides, block by block or layer by layer"}
FAMILY = "plan"
ORDER = 900
ACCURACY = "not measured"
REQUIRES_ONE_OF = ("plan",)
OPTIONS = {"plan": Option(str, "file with a plan, for scheme plan", FILE, None, "plan files")}


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """The plan of the file.

    Raises
    ------
    BuddysimError
        no file, or one that isn't a plan of the network
    """
    path = options.extra.get("plan")
    if path is None:
        raise BuddysimError("scheme plan: no file is named: expected option plan (--plan)")
    return read_plan(path, network, name)
