"""Histograms of times by powers of two, and waiting times of requests."""

from __future__ import annotations

ELEMENTS = 40


class RefHistogram:
    """A histogram: element b counts times of 2^b to 2^(b + 1) - 1 ps, the last one all longer times."""

    def __init__(self) -> None:
        self.elements = [0] * ELEMENTS
        self.total_ps = 0

    def add(self, time_ps: int) -> None:
        """Count a time."""
        self.total_ps += time_ps
        self.elements[min(max(0, time_ps.bit_length() - 1), len(self.elements) - 1)] += 1

    @property
    def count(self) -> int:
        return sum(self.elements)

    @property
    def mean_ps(self) -> int:
        """Return the mean, rounded down; 0 if nothing was counted."""
        return self.total_ps // self.count if self.count else 0


class RefQueueWaits:
    """Waiting times of requests at each kind of resource (docs/reference/replay-counters.md, Queueing)."""

    def __init__(self) -> None:
        self.l1_port, self.l1_mshr, self.l1_store = RefHistogram(), RefHistogram(), RefHistogram()
        self.request_port, self.reply_port, self.slice_port = RefHistogram(), RefHistogram(), RefHistogram()
        self.l2_mshr, self.compressor, self.metadata_port = RefHistogram(), RefHistogram(), RefHistogram()
        self.dram_read, self.dram_write = RefHistogram(), RefHistogram()
        self.link_read, self.link_write = RefHistogram(), RefHistogram()

    def by_name(self) -> dict[str, list[int]]:
        """Return the histograms by their names in results."""
        return {f"queueing.{name}_histogram": histogram.elements for name, histogram in vars(self).items()}


class RefLatencyHistograms:
    """All histograms of a run."""

    def __init__(self) -> None:
        self.waits, self.l1_miss, self.l2_miss = RefQueueWaits(), RefHistogram(), RefHistogram()
