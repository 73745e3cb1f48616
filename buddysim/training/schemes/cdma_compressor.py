"""cDMA with any compressor of `buddysim.compress`, in its windows or, where it has none, in entries of 128 B."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.option import Option, values
from buddysim.training.contents.activation_options import OPTIONS as CONTENTS_OPTIONS
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED
from buddysim.training.schemes.cdma import compressed_copies, compressed_plan

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"cdma": "vdnn-all-p with copies compressed by the compressor of --compressor"}
FAMILY = "cdma"
ORDER = 210
FACTS = SchemeFacts(
    source="cDMA with any compressor of the package",
    moves="as cdma",
    costs="as cdma",
    applies="as cdma",
    check="`tests/training/schemes/test_cdma.py`",
)
ACCURACY = UNCHANGED
FITS_AS = {"cdma": "vdnn-all-p"}
OPTIONS = {
    "compressor": Option(
        str, "compressor of scheme cdma, a name of 'list compressor'", "NAME", "zvc", "cDMA, for scheme cdma"
    ),
    **CONTENTS_OPTIONS,
}


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """cDMA's plan with the chosen compressor."""
    compressor = values(OPTIONS, options.extra)["compressor"]
    copies = compressed_copies(network, batch, machine, options, compressor)
    return compressed_plan(network, batch, machine, cost, name, options, copies)
