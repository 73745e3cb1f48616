"""The metadata cache, and the times of its lookups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tests.reference.replay.dram.dram import RefDram
from tests.reference.replay.memory.address_map import RefAddressMap, hash_index
from tests.reference.replay.memory.histograms import RefQueueWaits
from tests.reference.replay.numbers import FINE, SECTOR_BYTES
from tests.reference.replay.primitives.caches import RefCache, RefCacheLine
from tests.reference.replay.primitives.ports import RefClock, RefPort


class RefMetadataLookup(NamedTuple):
    """The times of a lookup and of the known size (ps), and the outcome: `hits`, `mshr_merges` or `misses`."""

    looked_up: int
    known: int
    word: str


class RefMetadataCache:
    """A cache of metadata lines.

    Parameters
    ----------
    address_map : of the machine
    clock : the run's
    dram : where missing lines come from
    counts, waits : what is counted
    """

    def __init__(
        self, address_map: RefAddressMap, clock: RefClock, dram: RefDram, counts: Counter[str], waits: RefQueueWaits
    ) -> None:
        self.address_map, self.dram, self.counts = address_map, dram, counts
        machine = address_map.machine
        keys = machine.metadata_cache
        self.line_bytes = keys.line
        self.ports = [RefPort(waits.metadata_port) for _ in range(keys.slices)]
        self.lookup_cost = FINE * machine.ps(keys.lookup_interval)
        self.hit_latency = machine.ps(keys.hit_latency)
        sets = keys.size // (keys.slices * keys.ways * keys.line)
        self.cache = RefCache(keys.ways, lambda m: (hash_index(m, keys.slices), hash_index(m // keys.slices, sets)))

    def look_up(self, entry: int, t: int, *, write: bool) -> RefMetadataLookup:
        """Look up the size of an entry at `t`; with `write`, the size changes."""
        number = entry // (2 * self.line_bytes)
        port = self.ports[hash_index(number, len(self.ports))]
        looked_up = port.request(t, self.lookup_cost) + self.hit_latency
        line = self.cache.find(number)
        if line is not None:
            lookup = RefMetadataLookup(
                looked_up, max(looked_up, line.ready), "mshr_merges" if line.ready > looked_up else "hits"
            )
        else:
            line = self._fetch(number, looked_up)
            lookup = RefMetadataLookup(looked_up, line.ready, "misses")
        if write:
            line.dirty = 1
        if lookup.word == "misses":
            for ahead in self.lines_ahead(number):
                self.fetch_ahead(ahead, looked_up)
        self.counts["metadata.accesses"] += 1
        self.counts[f"metadata.{lookup.word}"] += 1
        return lookup

    def lines_ahead(self, number: int) -> Sequence[int]:
        """Return the lines that the machine's prefetcher fetches after a miss of a line: none."""
        assert self.address_map.machine.metadata_cache.prefetcher == "none"
        return ()

    def fetch_ahead(self, number: int, t: int) -> None:
        """Fetch a line at `t`, unless it is present or pending, or of no entry."""
        if number * 2 * self.line_bytes < self.address_map.n_entries and number not in self.cache.set_for(number):
            self._fetch(number, t)

    def _fetch(self, number: int, t: int) -> RefCacheLine:
        victim = self.cache.evict_if_full(number)
        bursts = self.line_bytes // SECTOR_BYTES
        if victim is not None and victim[1].dirty:
            self.dram.count("metadata_write", self.address_map.metadata_location(victim[0]), bursts)
            self.dram.write(self.address_map.metadata_location(victim[0]), bursts, max(t, victim[1].ready))
        self.dram.count("metadata_read", self.address_map.metadata_location(number), bursts)
        line = self.cache.add(number)
        line.ready = self.dram.read(self.address_map.metadata_location(number), bursts, t)
        return line
