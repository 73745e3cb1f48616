"""Random plans with every possible decision for any feature map of a network."""

from __future__ import annotations

from hypothesis import strategies as st

from buddysim.training.iteration.allocators import POOL, LiveSetCounter, StaticGroups
from buddysim.training.iteration.plan import PREFETCHES, Plan
from buddysim.training.iteration.stash import Encoding, Offload, Stash
from buddysim.training.networks.graph import Network
from buddysim.training.schemes import _algorithms, activation_checkpointing
from tests.training.doubles import Cost

times = st.integers(0, 3_000_000)


@st.composite
def codes(draw: st.DrawFn) -> Encoding:
    return Encoding(draw(st.integers(1, 3000)), draw(times), draw(times))


@st.composite
def moves(draw: st.DrawFn, network: Network, last_consumer: int) -> Offload:
    """Generate a plan; waits are for layers that run after the copy is launched."""
    later = st.none() | st.integers(last_consumer, len(network.layers) - 1)
    until = draw(later)
    host = draw(st.none() | codes())
    return Offload(
        link_bytes=draw(st.none() | st.integers(1, 3000)),
        offload_ps=draw(st.none() | times),
        prefetch_ps=draw(st.none() | times),
        offload_deadline=until,
        prefetch_launch=draw(st.none() | st.integers(1, len(network.layers) - 1)),
        host_encoding=host,
        host_encoding_deadline=None
        if host is None
        else draw(st.none() | st.integers(until or last_consumer, len(network.layers) - 1)),
    )


@st.composite
def plans(draw: st.DrawFn, network: Network, cost: Cost) -> Plan:
    own = [layer.index for layer in network.layers if layer.in_place]
    in_place = draw(st.none() | st.frozensets(st.sampled_from(own))) if own else None
    network = network.in_place_only(in_place)
    stash = {}
    overlap = draw(st.booleans())
    for owner in network.buffers:
        if draw(st.booleans()):
            code, last = draw(st.none() | codes()), network.last_consumer(owner)
            # where the copy is launched by an encoding step behind that layer, only later layers can wait for it
            behind = code is not None and (not overlap or network.buffer_of(last) == owner)
            if behind and last == len(network.layers) - 1:
                move = draw(st.none() | st.just(Offload()))
            else:
                move = draw(st.none() | moves(network, last + behind))
            stash[owner] = Stash(code, draw(st.booleans()), move)
    products = [layer.index for layer in network.layers if layer.kind == "conv"]
    return Plan(
        "random",
        _algorithms.fastest(network, 1, cost),
        stash=stash,
        prefetch=draw(st.sampled_from(PREFETCHES)),
        overlap=overlap,
        allocator=draw(
            st.sampled_from([POOL, StaticGroups(), StaticGroups(stashed_in_groups=False), LiveSetCounter()])
        ),
        in_place=in_place,
        separate_backward=draw(st.frozensets(st.sampled_from(products))) if products else frozenset(),
        segments=draw(st.sampled_from([(), activation_checkpointing.segments(network)[:-1]])),
    )
