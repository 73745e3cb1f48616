"""The parser agrees with its reference model, and with timings counted by hand."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.importers.accelsim.header import KernelHeader, parse_header
from buddysim.importers.accelsim.opcodes import Opcode, classify, timing_of
from buddysim.importers.accelsim.parser import KernelParser
from buddysim.trace import (
    ATOMIC_CONFLICTS_SHIFT,
    BANK_WORDS_SHIFT,
    FLAG_BYPASS_L1,
    FLAG_NO_RETURN,
    FLAG_TIMED,
    OP_LOAD,
    OP_STORE,
)
from tests.importers.accelsim.kernels import kernels
from tests.reference.importers.accelsim import ref_parser

DATA = Path(__file__).parent / "data"


def run(
    header: KernelHeader, text: str, cuts: list[int]
) -> tuple[list[tuple[int, list[ref_parser.RefParsedWarp]]], KernelParser]:
    """Parse the text in parts that end at `cuts`; return records in the reference model's form."""
    timing = timing_of(header.binary_version)
    parser = KernelParser("kernel", header, lambda opcode: classify(opcode, timing))
    data = text.encode()
    parts = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        parser.feed(data[start:end])
        parts.append(parser.pop_records())
    parser.finish()
    parts.append(parser.pop_records())
    parsed = []
    for blocks, warps, ops, lines, pcs in parts:
        assert len(pcs) == len(ops)
        for block in blocks:
            its_warps = []
            for warp in warps[block["first_warp"] : block["first_warp"] + block["n_warps"]]:
                its_ops = []
                for index in range(warp["first_op"], warp["first_op"] + warp["n_ops"]):
                    op = ops[index]
                    words = lines[op["first_line"] : op["first_line"] + op["n_lines"]].tolist()
                    its_ops.append(
                        ref_parser.RefParsedOp(
                            int(pcs[index]),
                            int(op["gap_instructions"]),
                            int(op["unit_busy_slots"]),
                            (int(op["critical_path_cycles"]), int(op["critical_path_hops"])),
                            int(op["kind"]),
                            int(op["bytes_per_lane"]),
                            int(op["flags"]),
                            words,
                            int(op["use_distance"]),
                            (int(op["use_cycles"]), int(op["use_hops"])),
                        )
                    )
                tail = (int(warp["tail_critical_path_cycles"]), int(warp["tail_critical_path_hops"]))
                slots = int(warp["tail_unit_busy_slots"])
                its_warps.append(
                    ref_parser.RefParsedWarp(
                        int(warp["warp"]), its_ops, int(warp["tail_gap_instructions"]), tail, slots
                    )
                )
            parsed.append((int(block["block"]), its_warps))
    return parsed, parser


def classifier(header: KernelHeader) -> dict[str, Opcode]:
    """Return a cache of opcodes by their text."""
    timing = timing_of(header.binary_version)

    class Cache(dict[str, Opcode]):
        def __missing__(self, text: str) -> Opcode:
            self[text] = classify(text, timing)
            return self[text]

    return Cache()


@given(kernels(), st.data())
@settings(max_examples=60)
def test_agrees_with_reference_model(kernel: tuple[KernelHeader, str], data: st.DataObject) -> None:
    header, text = kernel
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    parsed, parser = run(header, text, cuts)
    assert parsed == ref_parser.parse(text, header, classifier(header).__getitem__)
    assert parser.counts["warp_instructions"] == sum(
        warp.tail_gap_instructions + sum(op.gap_instructions + 1 for op in warp.ops)
        for _, warps in parsed
        for warp in warps
    )


@pytest.mark.parametrize(
    ("archive", "kernel"),
    [("matmul-pascal", 1), pytest.param("vectoradd-ampere", 1, marks=pytest.mark.slow), ("bfs-volta", 5)],
)
def test_agrees_with_reference_model_on_real_kernels(archive: str, kernel: int) -> None:
    with tarfile.open(DATA / f"{archive}.tar.xz") as files:
        file = files.extractfile(f"{archive}/kernel-{kernel}.traceg")
        assert file is not None
        head, _, text = file.read().decode().partition("#")
    header = parse_header(archive, head.split("\n"))
    parsed, parser = run(header, "#" + text, [5000, 5001, 100_000])
    assert parsed == ref_parser.parse("#" + text, header, classifier(header).__getitem__)
    assert not parser.unknown_opcodes


VOLTA = KernelHeader("k", (1, 1, 1), (32, 1, 1), 0, 0, 70, 0, 0, 0, 3, False)


def ops_of(*lines: str, header: KernelHeader = VOLTA) -> tuple[list[ref_parser.RefParsedOp], ref_parser.RefParsedWarp]:
    """Return the operations and the warp of one warp's instructions."""
    text = "\n".join(["#BEGIN_TB", "thread block = 0,0,0", "warp = 0", f"insts = {len(lines)}", *lines, "#END_TB", ""])
    ((_, (warp,)),), _ = run(header, text, [])
    return warp.ops, warp


def test_independent_instructions_take_a_cycle_each() -> None:
    (load,), warp = ops_of(
        "0000 ffffffff 1 R1 IADD3 0 0",
        "0010 ffffffff 1 R2 FADD 0 0",
        "0020 ffffffff 1 R4 LDG.E 1 R9 4 1 0x1000 4",
        "0030 ffffffff 0 EXIT 0 0",
    )
    assert (load.gap_instructions, load.chain) == (2, (3, 0))
    assert (warp.tail_gap_instructions, warp.tail) == (1, (1, 0))
    assert (load.use_distance, load.use) == (0, (0, 0))


def test_a_dependent_chain_costs_latencies_and_steps() -> None:
    # IADD3 issues at 1; DADD reads R1 2 cycles and a step later; LDG reads R2 another 8 cycles and a step later
    (load,), _ = ops_of(
        "0000 ffffffff 1 R1 IADD3 0 0",
        "0010 ffffffff 1 R2 DADD 1 R1 0",
        "0020 ffffffff 1 R4 LDG.E 1 R2 4 1 0x1000 4",
    )
    assert load.chain == (1 + 2 + 8, 2)


def test_a_unit_starts_one_instruction_per_interval() -> None:
    # three SFU instructions start 8 cycles apart; the last result is ready 20 cycles after its start
    (load,), _ = ops_of(
        "0000 ffffffff 1 R1 MUFU.RCP 0 0",
        "0010 ffffffff 1 R2 MUFU.RCP 0 0",
        "0020 ffffffff 1 R3 MUFU.RCP 0 0",
        "0030 ffffffff 1 R4 LDG.E 1 R3 4 1 0x1000 4",
    )
    assert load.chain == (1 + 2 * 8 + 20, 1)


@pytest.mark.parametrize("user", ["FADD 1 R7 0", "FADD 0 0"])
def test_the_first_use_of_a_128_bit_load_reads_or_writes_one_of_four_registers(user: str) -> None:
    destination = "R3" if "R7" in user else "R6"
    (load,), _ = ops_of(
        "0000 ffffffff 1 R4 LDG.E.128 1 R2 16 1 0x1000 16",
        "0010 ffffffff 1 R1 FADD 1 R8 0",
        f"0020 ffffffff 1 {destination} {user}",
        "0030 ffffffff 1 R9 FADD 1 R4 0",
    )
    assert (load.use_distance, load.use) == (2, (2, 0))


def test_a_fence_uses_every_load_before_it() -> None:
    ops, _ = ops_of(
        "0000 ffffffff 1 R4 LDG.E 1 R2 4 1 0x1000 4",
        "0010 ffffffff 1 R5 LDG.E 1 R2 4 1 0x1000 4",
        "0020 ffffffff 0 MEMBAR.SC.GPU 0 0",
        "0030 ffffffff 1 R9 FADD 1 R4 0",
    )
    assert [op.use_distance for op in ops] == [2, 1]


def test_bank_conflicts_delay_shared_loads() -> None:
    chains = []
    for stride in (4, 8, 128, 0):
        (load,), _ = ops_of(
            f"0000 ffffffff 1 R4 LDS 1 R2 4 1 0x0 {stride}", "0010 ffffffff 1 R5 LDG.E 1 R4 4 1 0x1000 4"
        )
        chains.append(load.chain)
    assert chains == [(1 + 20, 1), (1 + 21, 1), (1 + 20 + 31, 1), (1 + 20, 1)]


def test_issue_slots_of_the_busiest_unit() -> None:
    integer, single = "0010 ffffffff 1 R{} IADD3 1 R255 0", "0020 ffffffff 1 R{} FADD 1 R255 0"
    shared, store = "0030 ffffffff 1 R{} LDS 1 R255 4 1 0x0 4", "0040 ffffffff 0 STG.E 1 R255 4 1 0x1000 4"
    parsed = []
    for lines in ([integer] * 10, [integer, single] * 5, [shared] * 10, [integer, shared, single], []):
        ops, _ = ops_of(*(line.format(i) for i, line in enumerate(lines)), store, store)
        parsed.append([op.unit_busy_slots for op in ops])
    # A scheduler's unit takes an instruction every 2 cycles; the shared memory takes one per cycle of all 4 schedulers.
    assert parsed == [[2 * 10 - 11, 0], [0, 0], [4 * 10 - 11, 0], [0, 0], [0, 0]]


def test_units_are_busy_after_the_last_operation_too() -> None:
    """Ten integer instructions issue every other cycle, and EXIT takes one cycle, with or without a store."""
    integer, store = "0000 ffffffff 1 R{} IADD3 0 0", "0040 ffffffff 0 STG.E 1 R255 4 1 0x1000 4"
    tail = [*(integer.format(i) for i in range(10)), "0050 ffffffff 0 EXIT 0 0"]
    for lines in (tail, [store, *tail]):
        _, warp = ops_of(*lines)
        assert (warp.tail_gap_instructions, warp.tail_unit_busy_slots) == (11, 2 * 10 + 1 - 11)
    _, warp = ops_of(store, tail[-1])
    assert (warp.tail_gap_instructions, warp.tail_unit_busy_slots) == (1, 0)
    _, warp = ops_of(*(integer.format(0) for _ in range(40_000)))
    assert warp.tail_unit_busy_slots == 40_000 * 2 - 40_000


def test_a_warp_ends_when_all_has_executed() -> None:
    """MUFU issues at 1 and has executed 20 cycles and a hop later; EXIT would have after 1 and a hop."""
    sfu, end = "0000 ffffffff 1 R1 MUFU.RCP 0 0", "0010 ffffffff 0 EXIT 0 0"
    assert ops_of(sfu, end)[1].tail == (1 + 20 - 1, 0)
    assert ops_of("0000 ffffffff 1 R1 FADD 0 0", end)[1].tail == (2, 0)
    dependent = "0010 ffffffff 1 R2 FADD 1 R1 0"
    assert ops_of(sfu, dependent, end)[1].tail == (1 + 20 + 2 - 1, 1)
    assert ops_of("0020 ffffffff 1 R4 LDG.E 1 R9 4 1 0x1000 4", end)[1].tail == (1, 0)


def test_meetings_of_an_atomic_s_lanes_at_words() -> None:
    """Conflicts are summed over sectors: the lanes at the busiest word less one."""
    ops, _ = ops_of(
        "0000 ffffffff 0 RED.E.ADD 2 R2 R4 4 1 0x1000 0",  # all on one word
        "0010 ffffffff 0 RED.E.ADD 2 R2 R4 4 1 0x1000 4",  # none
        "0020 0000000f 0 RED.E.ADD 2 R2 R4 4 2 0x1000 0 4 -4",  # three and one, in a sector
        "0030 0000000f 0 RED.E.ADD 2 R2 R4 4 2 0x1000 0 32 0",  # two and two, in sectors of their own
        "0040 00000003 0 RED.E.ADD.64 2 R2 R4 8 2 0x1000 8",  # neighbours
        "0050 00000003 0 RED.E.ADD.64 2 R2 R4 8 2 0x1000 0",
    )
    assert [op.flags >> ATOMIC_CONFLICTS_SHIFT for op in ops] == [31, 0, 2, 2, 0, 1]


def test_words_of_loads_and_stores() -> None:
    """Conflict cycles are those beyond a conflict-free access, modulo 32."""
    ops, _ = ops_of(
        "0000 ffffffff 1 R4 LDG.E 1 R2 4 1 0x1000 4",
        "0010 ffffffff 1 R4 LDG.E 1 R2 4 1 0x1000 12",  # every third word: one cycle, three for twelve sectors
        "0020 ffffffff 0 STG.E 2 R2 R4 4 1 0x1000 128",  # a column: 32 cycles, eight for 32 sectors
        "0030 ffffffff 1 R4 LDG.E.64 1 R2 8 1 0x1000 0",  # a cycle for each half of the warp
    )
    assert [op.flags >> BANK_WORDS_SHIFT for op in ops] == [0, (1 - 3) % 32, 32 - 8, 2 - 1]


def test_kinds_widths_and_flags_of_operations() -> None:
    ops, _ = ops_of(
        "0000 ffffffff 1 R4 LDG.E.64.STRONG.GPU 1 R2 4 1 0x1000 8",
        "0010 0000ffff 0 STG.E.U16 2 R2 R4 2 1 0x1020 2",
        "0020 00000001 0 RED.E.ADD 2 R2 R4 4 2 0x1000",
        "0030 00000001 1 R255 ATOMG.E.ADD 2 R2 R4 4 2 0x1000",
        "0040 00000001 1 R6 ATOMG.E.ADD 2 R2 R4 4 2 0x1000",
        "0050 00000000 1 R6 LDG.E 1 R2 4 1 0x0 0",
        "0060 00000000 0 BAR.SYNC 0 0",
    )
    assert [(op.kind, op.width, op.flags & ~FLAG_TIMED) for op in ops] == [
        (OP_LOAD, 8, FLAG_BYPASS_L1),
        (OP_STORE, 2, 0),
        (2, 4, FLAG_NO_RETURN),
        (2, 4, FLAG_NO_RETURN),
        (2, 4, 0),
    ]
    assert ops[0].lines == [0x20 << 8 | 0xF, 0x21 << 8 | 0xF]
    assert ops[1].lines == [0x20 << 8 | 0x22]
    assert ops[2].lines == [0x20 << 8 | 0x01]
    assert np.all([op.flags & FLAG_TIMED for op in ops])
