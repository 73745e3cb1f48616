"""Simulates the figures of buddysim/validation/data/dramsim3.toml with DRAMsim3 (github.com/umd-memsys/DRAMsim3).

    python tools/dramsim3_reference.py DRAMSIM3_FOLDER [PRESET ...]

DRAMSIM3_FOLDER has the sources and the libdramsim3.so that `make` builds there; g++ compiles the driver below.
"""

import itertools
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from buddysim.machine import Machine
from tests.reference.replay.primitives.ref_cache import fold

BURSTS = 60_000
QUEUES = ((32, 8), (64, 16))
ROWS = 16384
AT_ONCE = 2**16
DRIVER = r"""
#include <cstdio>
#include <utility>
#include <vector>
#include "memory_system.h"
int main(int, char **argv) {
  dramsim3::MemorySystem memory(argv[1], argv[2], [](uint64_t) {}, [](uint64_t) {});
  std::vector<std::pair<bool, unsigned long>> requests;
  char kind;
  unsigned long address, clock = 0, began = 0;
  while (scanf(" %c %lx", &kind, &address) == 2) requests.push_back({kind == 'W', address});
  for (size_t i = 0, first = requests.size() / 4; i < requests.size(); clock++) {
    memory.ClockTick();
    for (int n = 0; n < 2 && i < requests.size(); n++) {
      if (!memory.WillAcceptTransaction(requests[i].second, requests[i].first)) break;
      memory.AddTransaction(requests[i].second, requests[i].first);
      if (++i == first) began = clock;
    }
  }
  printf("\n%lu\n", clock - began);
}
"""


def configuration(machine: Machine, transactions: int, commands: int) -> tuple[str, int]:
    """Return DRAMsim3's configuration of one pseudo-channel, and the cycles of a burst."""
    dram, timing, hz = machine.dram, machine.dram.timing, Fraction(machine.clock.dram.hz)

    def cycles(key: str) -> int:
        return math.ceil(machine.ps(getattr(timing, key)) * hz / 10**12 - Fraction(1, 50))

    burst = round(32 * hz / machine.bytes_per_s(dram.pseudo_channel_bandwidth))
    length = 2 * burst
    width = 256 // length
    columns = dram.row_bytes * 8 // width
    same = ("tRP", "tRAS", "tRRD_S", "tRRD_L", "tFAW", "tWR", "tCCD_S", "tCCD_L", "tRTP")
    numbers = {key: cycles(key) for key in same} | {
        "tCK": float(10**9 / hz),
        "CL": cycles("tCL"),
        "CWL": cycles("tCWL"),
        "tRCDRD": cycles("tRCD"),
        "tRCDWR": cycles("tRCD"),
        "tRFC": max(1, cycles("tRFC")),
        "tREFI": cycles("tREFI") or 10**9,
        "tWTR_S": cycles("tWTR"),
        "tWTR_L": cycles("tWTR"),
        "tRTRS": cycles("tRTW") - cycles("tCL") - burst + cycles("tCWL"),
    }
    timings = "".join(f"{key}={value}\n" for key, value in numbers.items())
    return (
        f"[dram_structure]\nprotocol=HBM\nbankgroups={dram.bank_groups}\n"
        f"banks_per_group={dram.banks // dram.bank_groups}\nrows={ROWS}\ncolumns={columns}\ndevice_width={width}\n"
        f"BL={length}\nnum_dies=4\n[timing]\n{timings}[system]\n"
        f"channel_size={columns * width // 8 * ROWS // 2**20 * dram.banks}\nchannels=1\nbus_width={width}\n"
        f"address_mapping=rochrababgco\nqueue_structure=PER_BANK\nrow_buf_policy=OPEN_PAGE\n"
        f"cmd_queue_size={commands}\ntrans_queue_size={transactions}\nunified_queue=False\n"
        "[other]\nepoch_period=100000000\noutput_level=0\n"
    ), burst


def address(machine: Machine, entry: int, sector: int) -> int:
    """Return the address of a pseudo-channel's entry by the preset's address map, in DRAMsim3's order of fields."""
    groups, per_group = machine.dram.bank_groups, machine.dram.banks // machine.dram.bank_groups
    per_row = machine.dram.row_bytes // 128
    stripe, column = entry // (groups * per_row), entry // groups % per_row * 4 + sector
    row = stripe // per_group
    bank = (stripe ^ fold(row)) % per_group
    return (((row % ROWS * per_group + bank) * groups + entry % groups) * per_row * 4 + column) * 32


def stream(machine: Machine, kind: str) -> Iterator[tuple[bool, int]]:
    """Yield bursts of a kind without end: whether it is a write, and its address.

    ``evicting``: the L2 is full of dirty entries. Each accessed entry evicts another one; a store causes no read.
    """
    entries = machine.dram.row_bytes // 128 * machine.dram.banks * ROWS
    generator, entry = random.Random(1), 0
    parts = kind.split("_")
    if parts[0] == "stride":
        yield from ((False, address(machine, entry, 0)) for entry in strided(machine, int(parts[1])))
    if parts[0] == "random":
        run, write_fraction = int(parts[1]) // 32, {"mixed": 1 / 3, "write": 1.0}.get(parts[-1], 0.0)
        while True:
            entry, sector = generator.randrange(entries), generator.randrange(5 - run)
            write = generator.random() < write_fraction
            for i in range(run):
                yield write, address(machine, entry, sector + i)
            if parts[-1] == "evicting":
                entry = generator.randrange(entries)
                for i in range(4):
                    yield True, address(machine, entry, i)
    reads, writes = (int(parts[1]), int(parts[3])) if len(parts) > 2 else (int("read" in parts), int("write" in parts))
    writes = reads + writes if parts[-1] == "evicting" else writes
    while True:
        for array in range(reads + writes):
            for sector in range(4):
                yield array >= reads, address(machine, (entries // 4 + 31676) * array + entry, sector)
        entry += 1


def strided(machine: Machine, stride: int) -> Iterator[int]:
    """Yield the entries of the first pseudo-channel, by its own numbers, among every `stride`-th of all entries."""
    dram, slices = machine.dram, machine.l2.slices
    channels = dram.channels * dram.pseudo_channels
    divides = slices % dram.channels == 0
    per_channel, pseudo = (slices // dram.channels, dram.pseudo_channels) if divides else (1, channels // slices)
    for start in itertools.count(0, AT_ONCE):
        entry = np.arange(start, start + AT_ONCE) * stride
        local = entry // slices
        rotation = np.array([fold(value) for value in np.unique(local).tolist()])[
            np.unique(local, return_inverse=True)[1]
        ]
        hashed = (entry ^ rotation) & slices - 1 if slices & slices - 1 == 0 else (entry + rotation) % slices
        own = (hashed < per_channel) & ((local ^ local >> 3 ^ local >> 7) % pseudo == 0)
        yield from (entry[own] // channels).tolist()


def bandwidth_fraction(machine: Machine, kind: str, queues: tuple[int, int], driver: Path) -> float:
    """Return the fraction of peak bandwidth that DRAMsim3 reaches."""
    text, burst = configuration(machine, *queues)
    bursts = stream(machine, kind)
    requests = "".join(f"{'RW'[write]} {at:x}\n" for write, at in (next(bursts) for _ in range(BURSTS)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "machine.ini")
        file.write_text(text)
        ran = subprocess.run([driver, file, folder], input=requests, capture_output=True, text=True, check=True)
    return (BURSTS - BURSTS // 4) * burst / int(ran.stdout.split()[-1])


def main() -> None:
    """Print every preset's figures."""
    folder, names = Path(sys.argv[1]).resolve(), sys.argv[2:] or Machine.presets()
    kinds = ["read", "write", "read_1_write_1", "read_2_write_1"]
    kinds += [f"random_{size}{end}" for end in ("", "_mixed") for size in (32, 64, 128)] + ["random_32_write"]
    kinds += [f"stride_{entries}" for entries in (2, 4, 16, 64, 256)]
    kinds += [f"{kind}_evicting" for kind in ("read", "read_1_write_1", "read_2_write_1", "random_32", "random_64")]
    with tempfile.TemporaryDirectory() as scratch:
        source, driver = Path(scratch, "driver.cc"), Path(scratch, "driver")
        source.write_text(DRIVER)
        includes = [f"-I{folder / 'src'}", f"-I{folder / 'ext/headers'}"]
        library = [f"-L{folder}", "-ldramsim3", f"-Wl,-rpath,{folder}"]
        subprocess.run(["g++", "-O2", "-std=c++11", *includes, source, "-o", driver, *library], check=True)
        for name in names:
            print(f'\n["{name}"]')
            for kind in kinds:
                short, long = (bandwidth_fraction(Machine.load(name), kind, queues, driver) for queues in QUEUES)
                print(f"{kind} = [{short:.3f}, {long:.3f}]", flush=True)


if __name__ == "__main__":
    main()
