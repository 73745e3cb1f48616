"""Random chains of layers, whose plans are few enough to try all of them."""

from __future__ import annotations

import random
from itertools import product

from buddysim.machine.training import TrainingMachine
from buddysim.training.fit_check import allocate_tensors
from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.choices import KEEP, RECOMPUTE
from buddysim.training.fitting.layer_space import LayerSpace
from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.build import build
from buddysim.training.iteration.schedule import schedule
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.request import TrainingRequest
from buddysim.training.schemes._links import link_rate
from tests.training.doubles import Cost

BATCH = 1024


def chain(seed: int, parts: int) -> tuple[Network, Cost]:
    """Return parts of two fully connected layers of random sizes and times, whose result is added to their input."""
    draw = random.Random(seed)
    layers = [Layer(0, "input", "input", (), (draw.randint(1, 3000),))]

    def add(kind: str, inputs: tuple[int, ...], reads: set[str]) -> None:
        index = len(layers)
        layers.append(
            Layer(index, f"{kind}{index}", kind, inputs, (draw.randint(1, 3000),), part="classifier",
                  parameters=draw.randint(0, 300) if kind == "fc" else 0, backward_reads=frozenset(reads))
        )  # fmt: skip

    for _ in range(parts):
        before = len(layers) - 1
        add("fc", (before,), {"x", "dy"})
        add("fc", (before + 1,), {"x", "dy"})
        add("add", (before, before + 2), {"dy"})
    passes = ("forward", "backward", "backward_data", "backward_filter")
    times = {(one.name, pass_): draw.randint(0, 1_000_000_000) for one in layers for pass_ in passes}
    return Network(f"chain{seed}", layers), Cost(times)


def chain_space(seed: int, parts: int, choices: int, budget: int | None = None) -> LayerSpace:
    """Return the plans of a random chain, each part with the first choices."""
    network, cost = chain(seed, parts)
    request = TrainingRequest.of(
        network=network, machine=TrainingMachine.load("titan-x"), batch=BATCH, memory_bytes=budget
    ).resolved()
    space = LayerSpace(request, network, cost)  # type: ignore[arg-type]
    assert len(space.groups) == parts
    if choices == 2:
        space.choices = (KEEP, RECOMPUTE)
    return space


def every_plan(space: LayerSpace) -> dict[Assignment, tuple[int, int, bool]]:
    """Return time, peak and whether it fits of each plan on the GPU, by what timeline and allocator say."""
    tried = {}
    for choices in product(range(len(space.choices)), repeat=len(space.groups)):
        assignment = Assignment(0, choices)
        plan = space.plan(assignment)
        link = link_rate(space.machine, None)
        program = build(space.network, space.batch, space.cost, plan, link, space.options.optimizer)
        allocated, failure = allocate_tensors(program, plan, space.network, space.machine, space.options)
        peak = memory_usage.peak_bytes(allocated.program)
        tried[assignment] = schedule(allocated.program).time_ps, peak, failure is None
    return tried
