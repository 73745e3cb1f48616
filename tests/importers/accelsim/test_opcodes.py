"""Opcodes: access widths, roles, execution units, timings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from buddysim.importers.accelsim import opcodes
from buddysim.importers.accelsim.opcodes import TIMINGS, InstructionRole, Unit, access_width, classify, timing_of


@pytest.mark.parametrize(
    ("opcode", "width"),
    [
        ("LDG.E", 4), ("LDG.E.U8.SYS", 1), ("LDG.E.64", 8), ("STG.E.128.SYS", 16), ("LDG.E.U16.CONSTANT", 2),
        ("LDS.U.128", 16), ("LDG.E.S8", 4), ("RED.E.ADD.F32.FTZ.RN", 4), ("LDG.E.LTC128B.64", 8), ("X.0.9999999999", 4),
    ],
)  # fmt: skip
def test_width_per_lane(opcode: str, width: int) -> None:
    assert access_width(opcode.split(".")[1:]) == width


def test_roles_and_units() -> None:
    volta = timing_of(70)
    assert classify("LDG.E.64.STRONG.GPU", volta).bypass_l1
    assert not classify("LDG.E.64.STRONG.SYS", volta).bypass_l1
    assert classify("BAR.SYNC.DEFER_BLOCKING", volta).role == InstructionRole.BARRIER
    assert classify("BAR.ARV", volta).role == InstructionRole.PLAIN
    assert classify("IMAD.WIDE.U32", volta).registers == 2
    assert classify("IMAD", volta).registers == 1
    assert classify("LDG.E.128", volta).registers == 4
    assert classify("MUFU.RSQ", volta).latency == 20
    assert classify("MUFU.RSQ", volta).unit == Unit.SPECIAL
    for name in ("EXIT", "BAR.SYNC"):  # a cycle of the integer unit
        brief = classify(name, volta)
        assert (brief.unit, brief.latency, brief.interval) == (Unit.INTEGER, 1, 1)
    assert not classify("FROBNICATE.X", volta).known
    assert classify("FROBNICATE.X", volta).unit == Unit.INTEGER


def test_the_newest_timing_before_a_version() -> None:
    assert timing_of(86) is TIMINGS[80]
    assert timing_of(120) is TIMINGS[90]
    assert timing_of(35) is TIMINGS[60]


def test_roles_and_units_have_the_numbers_of_the_compiled_parser() -> None:
    folder = Path(opcodes.__file__).parent
    declared = (folder / "instruction.pxd").read_text(encoding="utf-8")
    body = re.search(r"^cdef enum Role:.*\n((?:    .*\n)+)", declared, re.MULTILINE)
    assert body
    roles = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", body[1])}
    assert roles == {role.name: role.value for role in opcodes.InstructionRole}
    units = re.search(r"N_UNITS = (\d+)", (folder / "warp.pxd").read_text(encoding="utf-8"))
    assert units
    assert int(units[1]) == len(opcodes.Unit)
