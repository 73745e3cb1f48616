"""Times of collectives: all-gather, reduce-scatter, all-reduce over the GPUs that train one model together."""

from buddysim.training.collectives.times import CollectiveTimes

__all__ = ["CollectiveTimes"]
