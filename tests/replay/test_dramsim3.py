"""Simulated fractions of the peak bandwidth agree with DRAMsim3's for the same timings."""

import pytest

from buddysim.machine import Machine
from buddysim.validation.dram import IN_ORDER, TOLERANCE, TOLERANCE_IN_ORDER, bandwidth_fraction, load_reference

QUICK = {"read", "write", "read_2_write_1", "random_32", "random_64", "random_32_mixed"}
CASES = [
    (name, kind)
    for name, kinds in load_reference().items()
    for kind in kinds
    if not kind.endswith("_evicting") and not kind.startswith("stride")
]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        case if case[0] == "p100-nvlink2" and case[1] in QUICK else pytest.param(*case, marks=pytest.mark.slow)
        for case in CASES
    ],
)
def test_bandwidth_is_that_of_a_cycle_by_cycle_controller(name, kind):
    lowest, highest = sorted(load_reference()[name][kind])
    tolerance = TOLERANCE_IN_ORDER if kind in IN_ORDER else TOLERANCE
    assert lowest * (1 - tolerance) <= bandwidth_fraction(Machine.load(name), kind) <= highest * (1 + tolerance)
