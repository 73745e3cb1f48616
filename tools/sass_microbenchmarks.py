"""Writes microbenchmarks as SASS traces in the format of Accel-Sim's tracer, for Accel-Sim and for `import`.

python tools/sass_microbenchmarks.py FOLDER     writes FOLDER/units and FOLDER/empty_blocks, a kernelslist.g in each

`units` are kernels without memory operations: chains and streams of one unit's instructions, with one to eight warps
per scheduler. `empty_blocks` are grids of blocks with one to nine instructions. Accel-Sim's cycles for both are in
buddysim/validation/data/accelsim.toml.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HEADER = """\
-kernel name = {name}
-kernel id = {number}
-grid dim = ({blocks},1,1)
-block dim = ({threads},1,1)
-shmem = 0
-nregs = 16
-binary version = 70
-cuda stream id = 0
-shmem base_addr = 0x00007ff000000000
-local mem base_addr = 0x00007ff100000000
-nvbit version = 1.7
-accelsim tracer version = 5
-enable lineinfo = 0

#traces format = [line_num] PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [addresses] immediate

"""
UNITS = ("FADD", "IADD3", "MUFU.RCP", "DADD")
Body = Callable[[int], str]


@dataclass(frozen=True)
class Kernel:
    """A grid whose warps all execute the same instructions.

    Parameters
    ----------
    name : of the kernel
    blocks, threads : of the grid, of each block
    body : the instructions before EXIT, without program counter and mask
    """

    name: str
    blocks: int
    threads: int
    body: Sequence[str]

    def text(self, number: int) -> Iterator[str]:
        """Yield the parts of the trace."""
        lines = [*self.body, "0 EXIT 0 0 0"]
        warp = "\n".join(f"{16 * i:04x} ffffffff {line} " for i, line in enumerate(lines))
        warps = "".join(f"warp = {i}\ninsts = {len(lines)}\n{warp}\n\n" for i in range(-(-self.threads // 32)))
        yield HEADER.format(name=self.name, number=number, blocks=self.blocks, threads=self.threads)
        for block in range(self.blocks):
            yield f"#BEGIN_TB\n\nthread block = {block},0,0\n\n{warps}#END_TB\n\n"


def chain(*opcodes: str) -> Body:
    """Return a chain: each instruction uses the result of the previous one."""
    return lambda i: f"1 R4 {opcodes[i % len(opcodes)]} 2 R4 R5 0 0"


def stream(*opcodes: str) -> Body:
    """Return independent instructions; a result may take two registers."""
    return lambda i: f"1 R{4 + 2 * (i % 16)} {opcodes[i % len(opcodes)]} 2 R60 R61 0 0"


def units() -> Iterator[Kernel]:
    """Yield kernels without memory operations."""

    def repeated(name: str, blocks: int, threads: int, body: Body, n: int) -> Kernel:
        return Kernel(name, blocks, threads, [body(i) for i in range(n)])

    for opcode in UNITS:
        short = opcode.partition(".")[0].lower()
        yield repeated(f"chain_{short}", 1, 32, chain(opcode), 128)
        yield repeated(f"stream_{short}", 1, 32, stream(opcode), 128)
        yield repeated(f"stream_{short}_16_warps", 1, 512, stream(opcode), 128)
        yield repeated(f"stream_{short}_640_warps", 160, 128, stream(opcode), 64)
    yield repeated("chain_fadd_16_warps", 1, 512, chain("FADD"), 128)
    yield repeated("chain_fadd_2560_warps", 80, 1024, chain("FADD"), 64)
    yield repeated("stream_fadd_iadd3_16_warps", 1, 512, stream("FADD", "IADD3"), 128)
    yield repeated("stream_mixed_16_warps", 1, 512, stream("FADD", "IADD3", "MUFU.RCP", "FFMA"), 128)


def empty_blocks() -> Iterator[Kernel]:
    """Yield grids of blocks with one, three and nine instructions."""
    for threads in (32, 64, 128, 256, 512, 1024):
        for blocks in (80, 8000):
            yield Kernel(f"exit_{threads}_threads_{blocks}_blocks", blocks, threads, [])
    nothing, few = ["1 R1 MOV 0 0 0", "1 R2 S2R 0 0 0"], [f"1 R{4 + i} IADD3 1 R60 0 0" for i in range(8)]
    for threads in (32, 256, 1024):
        yield Kernel(f"three_{threads}_threads", 8000, threads, nothing)
        yield Kernel(f"nine_{threads}_threads", 4000, threads, few)


def write(folder: Path, kernels: Iterator[Kernel]) -> None:
    """Write a file for each kernel, and the kernelslist."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for number, kernel in enumerate(kernels, 1):
        names.append(f"kernel-{number}.traceg")
        with (folder / names[-1]).open("w", encoding="ascii") as file:
            file.writelines(kernel.text(number))
    (folder / "kernelslist.g").write_text("".join(f"{name}\n" for name in names), encoding="ascii")


def main(argv: Sequence[str] | None = None) -> int:
    """Write both sets of kernels."""
    parser = argparse.ArgumentParser(prog="sass_microbenchmarks.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder: Path = parser.parse_args(argv).folder
    write(folder / "units", units())
    write(folder / "empty_blocks", empty_blocks())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
