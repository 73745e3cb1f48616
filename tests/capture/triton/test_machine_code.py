"""PTX and machine code as text, and paths through loops that a compiler unrolled or began early; without Triton."""

from __future__ import annotations

import numpy as np
import pytest

from buddysim.capture.triton_kernels.compiled_kernel import CompiledAccess, CompiledKernel
from buddysim.capture.triton_kernels.layouts import AccessLayout, access_positions
from buddysim.capture.triton_kernels.path import PathFinder, ProgramPath
from buddysim.capture.triton_kernels.ptx import Position, number_lines, read_ptx
from buddysim.capture.triton_kernels.sass import read_sass
from buddysim.capture.triton_kernels.timing import PathTimes, _TensorCopies

PTX = """
.visible .entry k(
)
{
	.local .align 4 .b8 	__local_depot0[28];
	.loc	1 6 18
	// begin inline asm
	mov.u32 %r1, 0x0;
	.loc	1 7 18
	@%p1 ld.global.v2.b16 { %rs1, %rs2 }, [ %rd1 + 0 ];
	// end inline asm
	.loc	1 8 5
	// begin inline asm
	{
	.loc	1 8 5
	cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;
	}
	// end inline asm
	red.global.add.v4.f32 [ %rd1 + 0 ], %r1;
	ret;
}
	.file	1 "/source.py"
"""


def test_accesses_of_the_ptx() -> None:
    accesses = [(each.line, each.position, each.kind, each.bytes_per_lane) for each in read_ptx(PTX).accesses]
    assert accesses == [
        (10, Position("/source.py", 6, 18), "load", 4),
        (16, Position("/source.py", 8, 5), "async_copy", 16),
        (19, Position("/source.py", 8, 5), "atomic", 16),
    ]


def test_numbered_lines() -> None:
    numbered = number_lines(PTX)
    lines = numbered.split("\n")
    assert [line for line in lines if not line.startswith(".loc") and line] == [
        line for line in PTX.split("\n") if ".loc\t" not in line and line
    ]
    at = lines.index("\tcp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;")
    assert lines[at - 1] == ".loc 1 16 0"


LISTING = """
	.section	.text.k,"ax",@progbits
.text.k:
	//## File "/source.py", line 1
        /*0000*/                   S2R R0, SR_TID.X ;
	//## File "/source.py", line 9
        /*0010*/              @!P0 BRA `(.L_x_1) ;
.L_x_0:
	//## File "/source.py", line 5
        /*0020*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0030*/                   LDG.E R5, desc[UR4][R2.64+0x4] ;
	//## File "/source.py", line 6
        /*0040*/                   FADD R6, R4, R5 ;
	//## File "/source.py", line 9
        /*0050*/               @P1 BRA `(.L_x_0) ;
.L_x_1:
        /*0060*/              @!P2 BRA `(.L_x_2) ;
	//## File "/source.py", line 5
        /*0070*/                   LDG.E R4, desc[UR4][R2.64] ;
.L_x_2:
	//## File "/source.py", line 7
        /*0080*/                   STG.E desc[UR4][R2.64], R4 ;
        /*0090*/                   EXIT ;
.L_x_3:
        /*00a0*/                   BRA `(.L_x_3);
        /*00b0*/                   NOP;
"""
LOAD, STORE, LOOP = Position("/k.py", 3, 9), Position("/k.py", 4, 5), Position("/k.py", 2, 5)


def kernel() -> CompiledKernel:
    """A loop of loads that is unrolled twice, with a rest of one load, and a store."""
    positions = (None, None, None, None, LOAD, LOAD, STORE, None, LOOP)
    accesses = (
        CompiledAccess(AccessLayout("load", LOAD), (5,), 4),
        CompiledAccess(AccessLayout("store", STORE), (7,), 4),
    )
    return CompiledKernel("k", 1, 0, 16, accesses, positions, read_sass(LISTING, "k"))


def path(iterations: int) -> ProgramPath:
    finder = PathFinder(kernel(), {LOOP: 3})
    return finder.find([LOAD] * iterations + [STORE], {LOOP: [iterations]})


@pytest.mark.parametrize("iterations", range(8))
def test_every_iteration_is_walked_once(iterations: int) -> None:
    its_path = path(iterations)
    assert its_path.dropped == 0
    assert [event for event in its_path.events if event >= 0] == list(range(iterations + 1))
    assert its_path.instructions.count(2) == iterations // 2  # the unrolled loop
    assert its_path.instructions.count(7) == iterations % 2  # its rest
    assert its_path.instructions[-1] == 9


def test_times_of_a_path() -> None:
    """S2R, BRA, two loads whose sum is the second instruction after the first one, BRA, BRA, store."""
    its_path = path(2)
    ops, _ = PathTimes(kernel().sass, its_path, 90).of_warp(np.ones(3, np.bool_))
    assert ops["gap_instructions"].tolist() == [2, 0, 3]
    assert ops["use_distance"].tolist() == [2, 1, 0]
    # A load without active lanes is an instruction.
    ops, _ = PathTimes(kernel().sass, its_path, 90).of_warp(np.array([True, False, True]))
    assert ops["gap_instructions"].tolist() == [2, 4]


def test_positions_of_operations() -> None:
    text = """
    %0 = tt.load %1 : tensor<64x!tt.ptr<f32>, #blocked> loc(#loc4)
    tt.store %1, %0 : tensor<64x!tt.ptr<f32>, #blocked> loc(#loc5)
#loc1 = loc("/k.py":3:9)
#loc2 = loc("/helper.py":8:12)
#loc3 = loc("value"(#loc2))
#loc4 = loc("x"(#loc1))
#loc5 = loc(callsite(#loc3 at #loc1))
""".replace("\n    ", "\n")
    assert access_positions(text) == [Position("/k.py", 3, 9), Position("/helper.py", 8, 12)]


def test_copies_of_an_element() -> None:
    """16 elements, 2 a thread: lanes 8 and up hold copies, and so does the second warp."""
    lanes = ((2,), (4,), (8,), (0,), (0,))
    layout = AccessLayout("store", LOAD, (16,), 4, (((1,),), lanes, ((0,),)))
    assert layout.elements(2, 2)[0, 0].tolist() == [2 * (lane % 8) for lane in range(32)]
    owners = layout.owners(2)
    assert owners[0].tolist() == [lane < 8 for lane in range(32)]
    assert not owners[1].any()


@pytest.mark.parametrize("loads", range(6))
def test_a_loop_that_the_source_has_not_goes_on_while_accesses_are_left(loads: int) -> None:
    its_path = PathFinder(kernel(), {}).find([LOAD] * loads + [STORE], {})
    assert its_path.dropped == 0
    assert [event for event in its_path.events if event >= 0] == list(range(loads + 1))
    assert its_path.instructions.count(2) == -(-loads // 2)  # the unrolled loop, its last iteration half used


TENSOR_COPIES = """
	.section	.text.k,"ax",@progbits
        /*0000*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0010*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0020*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0030*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0040*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R2 ;
        /*0050*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R2 ;
        /*0060*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R2 ;
        /*0070*/                   EXIT ;
"""


def test_a_wait_is_for_its_part_of_the_copies_before_it() -> None:
    """Of 4 copies and 3 waits the n-th wait is for the first 4n/3, rounded up: 2, 3 and 4, so 2, 1 and 0 may go on."""
    sass = read_sass(TENSOR_COPIES, "k")
    unused = (-1,) * len(sass.instructions)
    copies = _TensorCopies(sass, ProgramPath(tuple(range(len(sass.instructions))), unused, unused, unused, 0))
    waits = []
    for instruction in sass.instructions:
        if instruction.name == "UTMALDG":
            assert copies.issued(instruction).split()[3] == "LDGDEPBAR"
        elif line := copies.waiting(instruction):
            waits.append(line.split()[-1])
    assert waits == ["2", "1", "0"]
