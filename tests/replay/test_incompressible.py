"""Data that do not compress neither gain nor lose by compression."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

from buddysim.machine import Machine
from buddysim.machine.presets import replay_presets
from buddysim.replay.primitives.kinds import Traffic
from tests.replay.bare import Op, run_warps

ENTRIES = 1 << 14
#: Quick ones: a sector, two of two halves, all, and every mask in one trace.
MASKS = [*(mask if mask in (1, 6, 15) else pytest.param(mask, marks=pytest.mark.slow) for mask in range(1, 16)), None]
DATA = tuple(Traffic)[: Traffic.SCHEME_TRAFFIC]


@cache
def small_machine(preset: str, **overrides: object) -> Machine:
    """A preset with an L2 of 16 lines per slice, that evicts all the time."""
    machine = Machine.load(preset)
    small = {"sm.count": 4, "l1.size": f"{256 * machine.l1.ways} B"}
    small |= {"l2.ways": 16, "l2.size": f"{machine.l2.slices * 16 * 128} B"}
    if machine.l2.max_dirty:
        small["l2.max_dirty"] = f"{machine.l2.slices * 8 * 128} B"
    keys = {key.replace("__", "."): value for key, value in overrides.items()}
    return machine.with_overrides({**small, **keys})


def warps_of(mask: int | None, n_warps: int, seed: int) -> list[list[Op]]:
    """Loads, stores and atomics of one mask of sectors, or of random ones."""
    draw = random.Random(seed)

    def line(kind: int) -> tuple[int, int, int]:
        touched = mask or draw.randrange(1, 16)
        return draw.randrange(ENTRIES), touched, touched & draw.choice([0, 15, 5]) if kind == 1 else 0

    warps: list[list[Op]] = []
    for _ in range(n_warps):
        kinds = [draw.choice([0, 0, 1, 2]) for _ in range(30)]
        warps.append([(kind, [line(kind) for _ in range(draw.choice([1, 4, 9]))]) for kind in kinds])
    return warps


def run(preset: str, scheme: str, warps: list[list[Op]], **overrides: object) -> dict[str, Any]:
    return run_warps(small_machine(preset, **overrides), warps, scheme, regions=[(0, ENTRIES, 1, 4)])[0]


@pytest.mark.parametrize("preset", replay_presets())
@pytest.mark.parametrize("mask", MASKS)
def test_they_take_the_same_time_and_bytes(preset, mask):
    """Under `buddy` too, where its metadata cost nothing."""
    warps = warps_of(mask, 8, mask or 0)
    free = {"buddy__bypass_1x": False, "metadata_cache__perfect": True}
    ideal, *others = (run(preset, scheme, warps, **free) for scheme in ("ideal", "bandwidth-compression", "buddy"))
    assert ideal["now_ps"] > 0
    for other in others:
        assert other["now_ps"] == ideal["now_ps"]
        assert other["device"] == ideal["device"]
        assert other["dram_moved"] == ideal["dram_moved"]
        assert other["l2_read_misses"] == ideal["l2_read_misses"]


@pytest.mark.parametrize("preset", replay_presets())
@pytest.mark.parametrize("speculative", [False, True])
def test_metadata_come_on_top(preset, speculative):
    """One warp: with several, what hits may change with the times."""
    warps = warps_of(None, 1, 3)
    keys = {"buddy__bypass_1x": False, "metadata_cache__speculative_fetch": speculative}
    ideal, buddy = (run(preset, scheme, warps, **keys) for scheme in ("ideal", "buddy"))
    assert [buddy["device"][kind] for kind in DATA] == [ideal["device"][kind] for kind in DATA]
    assert buddy["scheme"]["metadata.misses"] > 0
    assert buddy["scheme"]["metadata.misspeculated_fills"] == 0


@pytest.mark.parametrize("scheme", ["bandwidth-compression", "buddy"])
def test_a_raw_entry_that_compresses_now_is_merged_first(scheme):
    """The write-back of a partly written line reads the other sectors, as the entry's size changes."""
    warps: list[list[Op]] = [[(1, [(entry, 1, 1)]) for entry in range(4000)]]
    keys = {"buddy__bypass_1x": False, "metadata_cache__perfect": True}
    moved = run_warps(
        small_machine("v100", **keys), warps, scheme, regions=[(0, ENTRIES, 1, 4)], state=[0x37] * ENTRIES
    )[0]["device"]
    assert moved[Traffic.READ_MODIFY_WRITE] == 3 * moved[Traffic.WRITEBACK] > 0
