"""Random kernel traces in the layout of every version, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from buddysim.importers.accelsim.header import KernelHeader

SHARED_BASE, LOCAL_BASE = 0x7E0001000000, 0x7E0000000000
MEMORY = 0x7F0000000000

_ALU = ["MOV", "IADD3", "IMAD.WIDE", "FFMA", "DFMA", "MUFU.RCP", "HMMA.16816.F32", "BRA", "TEX", "ULDC.64", "NEWOP.X"]
_ACCESS = [
    "LDG.E", "LDG.E.U8.SYS", "LDG.E.64", "LDG.E.128.STRONG.GPU", "STG.E", "STG.E.128", "STG.E.U16", "LD.E", "ST.E.64",
    "LDS.U.32", "LDS.128", "STS.64", "ATOMS.ADD", "ATOMG.E.ADD", "RED.E.ADD.STRONG.GPU", "LDL", "STL.128", "CCTL.IVALL",
    "LDGSTS.E.BYPASS.128",
]  # fmt: skip
_CONTROL = ["EXIT", "BAR.SYNC", "BAR.ARV", "MEMBAR.SC.GPU", "LDGDEPBAR", "DEPBAR.LE", "NOP"]

_registers = st.sampled_from(
    [f"R{n}" for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 252, 253, 254, 255)] + ["UR4", "UR62", "UR63"]
)


@st.composite
def headers(draw: st.DrawFn) -> KernelHeader:
    """Generate small kernels of any version."""
    version = draw(st.integers(1, 6))
    has_bases = version > 1 and draw(st.booleans())
    swapped = draw(st.booleans())
    bases = (LOCAL_BASE, SHARED_BASE) if swapped else (SHARED_BASE, LOCAL_BASE)
    return KernelHeader(
        name="random",
        grid=(draw(st.integers(1, 3)), draw(st.integers(1, 2)), 1),
        block=(draw(st.sampled_from([1, 32, 48, 96])), 1, 1),
        shared_memory_bytes=0,
        registers=16,
        binary_version=draw(st.sampled_from([35, 61, 70, 75, 80, 86, 90, 120])),
        stream=0,
        shared_base=bases[0] if has_bases else 0,
        local_base=bases[1] if has_bases else 0,
        version=version,
        line_info=version >= 4 and draw(st.booleans()),
    )


@st.composite
def memory_operands(draw: st.DrawFn, mask: int) -> str:
    """Generate width, mode and addresses; the width is sometimes wrong, as in real files."""
    n = mask.bit_count()
    width = draw(st.sampled_from([1, 4, 16]))
    if n == 0:
        return f"{width} 1 0x0 0"
    base = draw(st.sampled_from([MEMORY, SHARED_BASE, LOCAL_BASE])) + draw(st.integers(0, 4096))
    mode = draw(st.integers(0, 2))
    if mode == 1:
        return f"{width} 1 {base:#x} {draw(st.integers(-16, 200))}" if base > MEMORY else f"{width} 1 {base:#x} 4"
    distances = draw(st.lists(st.integers(0, 600), min_size=n - 1, max_size=n - 1))
    if mode == 2:
        return " ".join([f"{width} 2 {base:#x}", *map(str, distances)])
    addresses = [base + sum(distances[:k]) for k in range(n)]
    return " ".join([f"{width} 0", *(f"0x{address:016x}" for address in addresses)])


@st.composite
def instructions(draw: st.DrawFn, header: KernelHeader, prefix: str) -> str:
    """Generate one line of a kernel."""
    mask = draw(st.sampled_from([0xFFFFFFFF, 0xFFFFFFFF, 0x1, 0x0000FF00, 0x80000001, 0]))
    kind = draw(st.sampled_from(["alu", "alu", "access", "access", "control"]))
    names = {"alu": _ALU, "access": _ACCESS, "control": _CONTROL}[kind]
    opcode = draw(st.sampled_from(names))
    destinations = draw(st.lists(_registers, max_size=1)) if kind != "control" else []
    sources = draw(st.lists(_registers, max_size=4)) if kind != "control" else []
    parts = [prefix] if header.version < 3 else []
    parts += ["77"] if header.line_info else []
    parts += [f"{16 * draw(st.integers(0, 300)):04x}", f"{mask:08x}", str(len(destinations)), *destinations, opcode]
    parts += [str(len(sources)), *sources]
    parts.append(draw(memory_operands(mask)) if kind == "access" else "0")
    if header.version >= 5:
        parts.append(str(draw(st.integers(-1, 2))))
    if header.version >= 6:
        parts += ["0", "NoVal"]
    return " ".join(parts) + " "


@st.composite
def kernels(draw: st.DrawFn) -> tuple[KernelHeader, str]:
    """Generate a header and the grouped text after it."""
    header = draw(headers())
    lines = ["#traces format = any"]
    for number in range(header.grid_blocks):
        if draw(st.integers(0, 3)) == 0:
            continue  # an empty block isn't written
        x, y = number % header.grid[0], number // header.grid[0]
        lines += ["#BEGIN_TB", "", f"thread block = {x},{y},0", ""]
        for warp in range(header.block_warps):
            prefix = f"{x} {y} 0 {warp}"
            body = draw(st.lists(instructions(header, prefix), max_size=12))
            lines += [f"warp = {warp}", f"insts = {len(body)}", *body, ""]
        lines += ["#END_TB", ""]
    return header, "\n".join(lines)
