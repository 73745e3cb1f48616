"""Machine files: what is read, what is refused and how."""

from __future__ import annotations

import pytest

from buddysim.errors import BuddysimError
from buddysim.machine import Machine


def test_paper_machine_is_the_paper() -> None:
    machine = Machine.load("p100-nvlink2")
    assert (machine.sm.count, machine.sm.schedulers, machine.sm.policy, machine.sm.warps) == (56, 2, "gto", 64)
    assert (machine.l1.size, machine.l2.size, machine.l2.slices, machine.l2.ways) == (24 * 1024, 4 << 20, 32, 16)
    assert machine.dram_bytes_per_s == 896 * 10**9
    assert machine.bytes_per_s(machine.link.bandwidth) == 150 * 10**9
    assert machine.ps(machine.compression.latency) == 12571


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("l2.siez", "1 MiB", "l2.siez: unknown key (nearest: l2.size)"),
        ("l2.ways", 0, "l2.ways: 0 is out of range"),
        ("sm.count", "0", "sm.count: 0 is out of range"),
        ("l2.ways", 7, "expected a multiple of 28 KiB"),
        ("l2.size", "4 GHz", "l2.size: '4 GHz' is not a size"),
        ("dram.load_to_use", "200 ns", "expected at least 210.29 ns"),
    ],
)
def test_refusals_name_key_value_and_expectation(key: str, value: object, message: str) -> None:
    with pytest.raises(BuddysimError) as refused:
        Machine.load("p100-nvlink2").with_overrides({key: value})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
