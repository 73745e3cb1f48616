"""The metadata cache, and the times of its lookups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
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

    With `own_slice`, several slices may have a line: its number in each is `line * slices + slice`.

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
        self.keys = keys = machine.metadata_cache
        self.line_bytes = keys.line
        self.ports = [RefPort(waits.metadata_port) for _ in range(keys.slices)]
        self.lookup_cost = FINE * machine.ps(keys.lookup_interval)
        self.hit_latency = machine.ps(keys.hit_latency)
        self.slices, self.l2_slices, self.interleaving = keys.slices, machine.l2.slices, keys.interleaving
        self.hop = machine.ps(keys.hop_latency)
        self.between_slices: Callable[[int, int, int, int], int]  # the crossbar's, which comes later
        self.sets = keys.size // (keys.slices * keys.ways * keys.line)
        self.cache = RefCache(keys.ways, self._slice_and_set)

    def _slice_and_set(self, number: int) -> tuple[int, int]:
        """Return the slice and the set of a line."""
        line, rest = divmod(number, self.slices)
        if self.interleaving == "own_slice":
            return rest, hash_index(line, self.sets)
        return hash_index(number, self.slices), hash_index(line, self.sets)

    def _line(self, number: int) -> int:
        return number // self.slices if self.interleaving == "own_slice" else number

    def look_up(self, entry: int, t: int, *, fill: bool, write: bool = False) -> RefMetadataLookup:
        """Look up the size of an entry at `t` for a fill or a write-back; with `write`, the size changes."""
        number, own = entry // (2 * self.line_bytes), self.address_map.slice_of(entry)
        if self.interleaving == "own_slice":
            return self._look_up_line(number * self.slices + own * self.slices // self.l2_slices, t, write=write)
        home = hash_index(number, self.slices) * self.l2_slices // self.slices
        if self.interleaving == "ideal" or home == own:
            return self._look_up_line(number, t, write=write)
        arrival = self.between_slices(own, home, self.hop, t)
        looked_up, known, word = self._look_up_line(number, arrival, write=write)
        if fill and self.speculates(word):
            looked_up = self.between_slices(home, own, self.hop, looked_up)
        return RefMetadataLookup(looked_up, self.between_slices(home, own, self.hop, known), word)

    def speculates(self, word: str) -> bool:
        """Return whether a fill fetches device sectors before it knows the size, after a look-up with this outcome."""
        return self.keys.speculative_fetch and (
            word == "misses" or (word == "mshr_merges" and self.keys.on_pending_line == "speculate")
        )

    def _look_up_line(self, number: int, t: int, *, write: bool) -> RefMetadataLookup:
        port = self.ports[self._slice_and_set(number)[0]]
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
            of_slice = number - self._line(number) * self.slices if self.interleaving == "own_slice" else 0
            for ahead in self.lines_ahead(self._line(number)):
                line_there = ahead * self.slices + of_slice if self.interleaving == "own_slice" else ahead
                self.fetch_ahead(line_there, looked_up)
        self.counts["metadata.accesses"] += 1
        self.counts[f"metadata.{lookup.word}"] += 1
        return lookup

    def lines_ahead(self, number: int) -> Sequence[int]:
        """Return the lines that the machine's prefetcher fetches after a miss of a line: none."""
        assert self.keys.prefetcher == "none"
        return ()

    def fetch_ahead(self, number: int, t: int) -> None:
        """Fetch a line at `t`, unless it is present or pending, or of no entry."""
        first_entry = self._line(number) * 2 * self.line_bytes
        if first_entry < self.address_map.n_entries and number not in self.cache.set_for(number):
            self._fetch(number, t)

    def _fetch(self, number: int, t: int) -> RefCacheLine:
        victim = self.cache.evict_if_full(number)
        bursts = self.line_bytes // SECTOR_BYTES
        if victim is not None and victim[1].dirty:
            self.dram.count("metadata_write", self.address_map.metadata_location(self._line(victim[0])), bursts)
            self.dram.write(self.address_map.metadata_location(self._line(victim[0])), bursts, max(t, victim[1].ready))
        self.dram.count("metadata_read", self.address_map.metadata_location(self._line(number)), bursts)
        line = self.cache.add(number)
        line.ready = self.dram.read(self.address_map.metadata_location(self._line(number)), bursts, t)
        return line
