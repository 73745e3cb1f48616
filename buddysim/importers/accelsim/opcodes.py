"""Properties of SASS opcodes: their memory accesses and latencies.

Latencies are those of Accel-Sim's tested configurations, so that a replayed trace can be compared with it: files
``gpu-simulator/configs/tested-cfgs/*/trace.config`` of accel-sim/accel-sim-framework (``trace_opcode_latency_*`` and
the specialised units for branches, textures, tensor cores and the uniform datapath); shared memory is
``gpgpu_smem_latency``. Which opcode runs on which unit follows ``gpu-simulator/ISA_Def/*_opcode.h`` there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class InstructionRole(IntEnum):
    """Role of an instruction in the import; `instruction.pxd` has the same numbers."""

    PLAIN = 0
    LOAD = 1  # from global memory
    STORE = 2
    ATOMIC = 3
    GENERIC_LOAD = 4  # space by address
    GENERIC_STORE = 5
    LOCAL_LOAD = 6
    LOCAL_STORE = 7
    SHARED = 8
    BARRIER = 9
    ASYNC_COPY = 10  # LDGSTS: global to shared memory
    ASYNC_COMMIT = 11  # LDGDEPBAR: closes a group of them
    ASYNC_WAIT = 12  # DEPBAR: waits for groups
    MEMORY_FENCE = 13  # MEMBAR: waits for the warp's loads
    UNSUPPORTED = 14


class Unit(IntEnum):
    """Execution unit of an instruction."""

    INTEGER = 0
    SINGLE = 1
    DOUBLE = 2
    SPECIAL = 3
    TENSOR = 4
    BRANCH = 5
    TEXTURE = 6
    UNIFORM = 7
    SHARED = 8  # shared memory
    MEMORY = 9  # the others of the load-store unit, and what executes nowhere


@dataclass(frozen=True)
class UnitTiming:
    """Execution latency and initiation interval of each unit, in core cycles.

    Shared memory's latency is without bank conflicts. An access without active lanes has no latency. The `schedulers`
    of an SM share its one port to shared memory. Each scheduler has the other units for itself, as in the
    configurations (``gpgpu_num_sp_units`` and similar are 4).
    """

    source: str
    integer: tuple[int, int]
    single: tuple[int, int]
    double: tuple[int, int]
    special: tuple[int, int]
    tensor: tuple[int, int]
    branch: tuple[int, int]
    texture: tuple[int, int] = (200, 4)
    uniform: tuple[int, int] = (4, 1)
    shared: tuple[int, int] = (20, 1)
    memory: tuple[int, int] = (0, 1)
    schedulers: int = 4

    def latency_and_interval(self, unit: Unit) -> tuple[int, int]:
        """Return latency and initiation interval of a unit."""
        pair: tuple[int, int] = getattr(self, unit.name.lower())
        return pair


_CONFIG = "Accel-Sim tested-cfgs/{}/trace.config"

TIMINGS = {
    60: UnitTiming(
        "assumed: as sm_70, branches on the integer unit, because there is no such configuration",
        (2, 2),
        (2, 2),
        (8, 4),
        (20, 8),
        (2, 2),
        (2, 2),
        schedulers=2,
    ),
    70: UnitTiming(_CONFIG.format("SM7_GV100"), (2, 2), (2, 2), (8, 4), (20, 8), (2, 2), (4, 4)),
    75: UnitTiming(_CONFIG.format("SM75_RTX2060"), (2, 2), (2, 2), (64, 64), (21, 8), (16, 16), (4, 4)),
    80: UnitTiming(_CONFIG.format("SM80_A100"), (4, 2), (4, 2), (6, 4), (23, 8), (12, 8), (4, 4)),
    90: UnitTiming(_CONFIG.format("SM90_H100"), (4, 2), (4, 2), (8, 2), (23, 8), (1, 1), (4, 4)),
}


def timing_of(binary_version: int) -> UnitTiming:
    """Return the timing of the SASS version, or of the newest known version before it."""
    known = [version for version in TIMINGS if version <= binary_version]
    return TIMINGS[max(known, default=min(TIMINGS))]


_ROLES = {
    **dict.fromkeys(("LDG",), InstructionRole.LOAD),
    **dict.fromkeys(("STG",), InstructionRole.STORE),
    **dict.fromkeys(("ATOM", "ATOMG", "RED", "REDG"), InstructionRole.ATOMIC),
    **dict.fromkeys(("LD",), InstructionRole.GENERIC_LOAD),
    **dict.fromkeys(("ST",), InstructionRole.GENERIC_STORE),
    **dict.fromkeys(("LDL",), InstructionRole.LOCAL_LOAD),
    **dict.fromkeys(("STL",), InstructionRole.LOCAL_STORE),
    **dict.fromkeys(("LDS", "STS", "ATOMS", "LDSM", "STSM"), InstructionRole.SHARED),
    "LDGSTS": InstructionRole.ASYNC_COPY,
    "LDGDEPBAR": InstructionRole.ASYNC_COMMIT,
    "DEPBAR": InstructionRole.ASYNC_WAIT,
    "MEMBAR": InstructionRole.MEMORY_FENCE,
    **dict.fromkeys(
        ("UBLKCP", "UBLKPF", "UBLKRED", "UTMALDG", "UTMAPF", "UTMAREDG", "UTMASTG"), InstructionRole.UNSUPPORTED
    ),
}

_SINGLE = """FADD FADD32I FCHK FCMP FFMA FFMA32I FMNMX FMUL FMUL32I FSEL FSET FSETP FSWZADD HADD2 HADD2_32I HFMA2
HFMA2_32I HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2 RRO VIMNMX VIMNMX3"""
_DOUBLE = "DADD DFMA DMNMX DMUL DSET DSETP"
_TENSOR = "BMMA DMMA HMMA IMMA"
_BRANCH = """BMOV BPT BRA BREAK BRK BRX BRXU BSSY BSYNC CAL CALL CONT ELECT JCAL JMP JMX JMXU KILL NANOSLEEP PBK PCNT
PEXIT PRET RET RPCMOV RTT SSY SYNC WARPSYNC YIELD"""
_TEXTURE = "TEX TEXS TLD TLD4 TLD4S TLDS TMML TXD TXQ"
_UNIFORM = """R2UR REDUX S2UR UBMSK UBREV UCLEA UF2FP UFLO UIADD3 UIMAD UISETP ULDC ULEA ULOP ULOP3 ULOP32I UMOV UP2UR
UPLOP3 UPOPC UPRMT UPSETP UR2UP USEL USGXT USHF USHL USHR VOTEU"""
_INTEGER = """BFE BFI BMSK BREV FLO IABS IADD IADD3 IADD32I ICMP IDP IDP4A IMAD IMADSP IMNMX IMUL IMUL32I ISCADD
ISCADD32I ISET ISETP LEA LOP LOP3 LOP32I POPC SHF SHL SHR VABSDIFF VABSDIFF4 VADD VIADD VIADDMNMX VMNMX XMAD
F2F F2FP F2I F2IP FRND I2F I2FP I2I I2IP MOV MOV32I MOVM PRMT SEL SGXT SHFL
CSET CSETP P2R PLOP3 PSET PSETP R2P LDC MATCH QSPC CCTL CCTLL CCTLT ERRBAR CGAERRBAR
SUATOM SULD SUQUERY SURED SUST B2R CS2R CSMTEST GETLMEMBASE LEPC NOP PMTRIG R2B S2R SETCTAID SETLMEMBASE VOTE VOTE_VTG
ARRIVES FENCE SYNCS HGMMA QGMMA UCGABAR_ARV UCGABAR_WAIT USETMAXREG UTMACCTL UTMACMDFLUSH WARPGROUP
DEPBAR LDGDEPBAR
BAR EXIT"""
# Accel-Sim's trace_config::set_latency names no latency for these; GPGPU-Sim's scheduler_unit::cycle issues them to the
# integer unit.
_BRIEF = frozenset(("BAR", "EXIT"))

_UNITS = {
    name: unit
    for names, unit in (
        (_SINGLE, Unit.SINGLE),
        (_DOUBLE, Unit.DOUBLE),
        ("MUFU", Unit.SPECIAL),
        (_TENSOR, Unit.TENSOR),
        (_BRANCH, Unit.BRANCH),
        (_TEXTURE, Unit.TEXTURE),
        (_UNIFORM, Unit.UNIFORM),
        (_INTEGER, Unit.INTEGER),
        ("MEMBAR LD LDG LDL LDGSTS ST STG STL ATOM ATOMG RED REDG", Unit.MEMORY),
        ("LDS STS ATOMS LDSM STSM", Unit.SHARED),
    )
    for name in names.split()
}


@dataclass(frozen=True)
class Opcode:
    """One opcode with its modifiers, for one GPU generation.

    Parameters
    ----------
    role : its effect on memory
    unit : execution unit
    latency : execution latency, core cycles
    interval : initiation interval of the unit, core cycles
    shared_by : schedulers that share the unit
    width : bytes per lane, if it accesses memory
    registers : consecutive registers that its destination names by the first
    bypass_l1 : a load that the L2 must serve
    no_return : an atomic without a result
    known : whether the tables above name it
    """

    role: InstructionRole
    unit: Unit
    latency: int
    interval: int
    shared_by: int
    width: int
    registers: int
    bypass_l1: bool
    no_return: bool
    known: bool


def access_width(modifiers: list[str]) -> int:
    """Return the bytes per lane from the first modifier that is a number of bits, with or without U; 4 without one.

    Accel-Sim's reader does the same (``get_datawidth_from_opcode`` of its trace parser), because the printed width can
    be wrong.
    """
    for modifier in modifiers:
        digits = modifier.removeprefix("U")
        if digits.isascii() and digits.isdigit() and 8 <= int(digits[:6]) <= 256:
            return int(digits) // 8
    return 4


def classify(text: str, timing: UnitTiming) -> Opcode:
    """Return the properties of an opcode such as ``LDG.E.128.STRONG.GPU``."""
    name, *modifiers = text.split(".")
    role = _ROLES.get(name, InstructionRole.PLAIN)
    if name == "BAR" and "ARV" not in modifiers:  # an arrival doesn't wait
        role = InstructionRole.BARRIER
    width = access_width(modifiers)
    registers = 1
    if role in (
        InstructionRole.LOAD,
        InstructionRole.GENERIC_LOAD,
        InstructionRole.LOCAL_LOAD,
        InstructionRole.ATOMIC,
    ) or name in ("LDS", "LDC"):
        registers = max(1, width // 4)
    elif "WIDE" in modifiers or _UNITS.get(name) == Unit.DOUBLE:
        registers = 2
    unit = _UNITS.get(name, Unit.INTEGER)
    latency, interval = (1, 1) if name in _BRIEF else timing.latency_and_interval(unit)
    return Opcode(
        role=role,
        unit=unit,
        latency=latency,
        interval=interval,
        shared_by=timing.schedulers if unit == Unit.SHARED else 1,
        width=width,
        registers=registers,
        bypass_l1=role in (InstructionRole.LOAD, InstructionRole.GENERIC_LOAD)
        and "STRONG" in modifiers
        and "GPU" in modifiers,
        no_return=name in ("RED", "REDG"),
        known=name in _UNITS,
    )
