"""Samples and tokens of an iteration, over all GPUs and micro-steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from buddysim.training.options.sharding_options import KINDS


class Throughput(NamedTuple):
    """What an iteration trains on.

    Attributes
    ----------
    gpus : that train together, each on samples of its own
    samples : of all GPUs and micro-steps
    tokens : in these samples; None of a network without sequences
    """

    gpus: int
    samples: int
    tokens: int | None

    @classmethod
    def of(cls, options: Mapping[str, Any], batch: int) -> Throughput:
        """Return that of a network with some options.

        Parameters
        ----------
        options : of a network from a configuration; a described network has none, and one GPU
        batch : samples of a GPU's micro-step
        """
        gpus = next((options[kind] for kind in KINDS if options.get(kind)), 1)
        samples = gpus * batch * options.get("accumulation", 1)
        sequence = options.get("sequence")
        return cls(gpus, samples, samples * sequence if sequence else None)


def per_second(count: int | None, time_ps: int) -> float | None:
    """Return a rate; None of no count."""
    return None if count is None else count * 10**12 / time_ps
