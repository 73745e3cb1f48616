"""The section of the crossbar."""

from __future__ import annotations

from pydantic import Field

from buddysim.machine import fields
from buddysim.machine.section import Rate, Section, Switch


class CrossbarConfig(Section):
    """The network between SMs and L2 slices; each SM has one port in each direction."""

    request_bandwidth: Rate = Field(description="bandwidth from one SM to the L2, for requests and store data")
    reply_bandwidth: Rate = Field(description="bandwidth from the L2 to one SM, for load data")
    input_queued: Switch = fields.key(
        False,
        "queueing of requests; true: one FIFO per SM with a request per sector, whose head blocks all "
        "others (head-of-line blocking); false: ports with a bandwidth and no blocking",
        "assumed: how the crossbar queues requests is not published",
    )
    interleave_requesters: Switch = fields.key(
        False,
        "arbitration between two SMs at one L2 slice, a stand-in for iSLIP that needs input_queued; true: "
        "each gets every other slot; false: first come, first served",
        "ports, not queues",
    )
