"""vDNN++ (Shriram et al., IPDPS 2019) as the CSWAP paper compares with it: the host compresses what came (Sec. V).

Copies stay as large as they are; feature maps with more than 60 % zeros are compressed by 64 threads of the host, which
takes less pinned memory, and decompressed before they go back. A copy's step waits for the host. The rate of a thread
isn't published.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.option import Option, values
from buddysim.training.contents.activation_options import (
    MAPPING_OPTION,
    contents_assumption,
    make_codec,
    make_mapped_source,
)
from buddysim.training.contents.activation_options import OPTIONS as CONTENTS_OPTIONS
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.program import copy_ps
from buddysim.training.iteration.stash import Encoding, Offload, Stash
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, vdnn

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"vdnnpp": "vDNN++: vdnn-conv-p with feature maps of over 60 % zeros compressed on the host"}
FAMILY = "vdnnpp"
ORDER = 400
FACTS = SchemeFacts(
    source="vDNN++ (Shriram et al., IPDPS 2019)",
    moves="X of CONV layers; the host compresses those of many zeros",
    costs="as vDNN",
    applies="CONV layers",
    check="`tests/training/schemes/test_vdnn.py`",
)
ACCURACY = UNCHANGED
#: Compression takes host time and less pinned memory.
THREADS = 64
MIN_SPARSITY = 0.6
_MAKERS = ("relu", "maxpool")

OPTIONS = {
    "host_codec_rate": Option(
        float, f"compression rate of each of the host's {THREADS} threads (assumed)", "GB/S", 0.05,
        "vDNN++, for scheme vdnnpp",
    ),
    **CONTENTS_OPTIONS,
    **MAPPING_OPTION,
}  # fmt: skip


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """vDNN's plan, with the host's work on sparse feature maps."""
    below = vdnn.plan(network, batch, machine, cost, "vdnn-conv-p", options)
    rate = values(OPTIONS, options.extra)["host_codec_rate"]
    if not 0 < rate < float("inf"):
        raise BuddysimError(f"host_codec_rate {rate!r}: expected a number of GB/s above 0")
    source = make_mapped_source(network, options.extra)
    contents = source.contents(network, batch, make_codec("zvc", options.extra))
    stash = dict(below.stash)
    for owner in below.stash:
        writer = network.layers[network.last_writer(owner)]
        density = contents[writer.index].density
        if writer.kind in _MAKERS and density is not None and 1 - density > MIN_SPARSITY:
            size = network.output_bytes(owner, batch)
            spent = copy_ps(size, max(1, round(rate * 1e9 * THREADS)))
            encoding = Encoding(round(size * contents[writer.index].compressed_fraction), spent, spent)
            stash[owner] = Stash(offload=Offload(host_encoding=encoding))
    rates = (
        f"Each of the host's {THREADS} threads compresses {rate:g} GB/s; no rate is published, so host times may be "
        "too long or too short."
    )
    n_compressed = sum(one.offload is not None and one.offload.host_encoding is not None for one in stash.values())
    notes = (*below.notes, f"host: compresses {n_compressed} feature maps with over {MIN_SPARSITY:.0%} zeros")
    assumptions = {"activations": contents_assumption(source.description), "host": rates}
    return replace(below, scheme=name, stash=stash, notes=notes, assumptions=assumptions)
