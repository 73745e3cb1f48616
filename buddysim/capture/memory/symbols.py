"""Names of call sites: function and source line where the program's files have them, else function and offset."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

FRAMES_IN_A_NAME: Final = 3
_FORWARDING: Final = re.compile(
    r"(operator new|std::|void\* std::|__gnu_cxx::|_gfortran|_?Py(DataMem|Mem|Object)_"
    r"|_?PyArray_(New|Empty|Zeros)|(x|g_|g_try_|default_)?(m|c|re)alloc\b|mmap\b)"
)
_RUNTIME: Final = re.compile(r"/(libc|ld-linux-x86-64|libstdc\+\+|libgfortran|libpthread)[.-]")
_SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_SHT_SYMTAB, _SHT_DYNSYM, _STT_FUNC = 2, 11, 2


class CallFrame(NamedTuple):
    """A call in the program: the function, if known, and ``location``, a source line or an offset."""

    function: str
    location: str
    module: str

    def __str__(self) -> str:
        if self.location.startswith("+"):
            return f"{self.function}{self.location}"
        return f"{self.function} ({self.location})"


class DamagedElfError(Exception):
    """An offset behind the end of a file, or a section that isn't there."""


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _numbers(layout: str, data: bytes, offset: int) -> tuple[int, ...]:
    if offset + struct.calcsize(layout) > len(data):
        raise DamagedElfError
    return struct.unpack_from(layout, data, offset)


def _section(sections: Sequence[tuple[int, ...]], index: int) -> tuple[int, ...]:
    if index >= len(sections):
        raise DamagedElfError
    return sections[index]


class Elf:
    """Functions and segments of a 64-bit little-endian ELF file; of any other file, none."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.segments: list[tuple[int, int, int]] = []  # file offset, bytes, address
        self.has_lines = False
        self._starts: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._symbols = np.empty(0, _SYMBOL)
        self._texts = b""
        try:
            self._read(_bytes_of(path))
        except DamagedElfError:
            self.segments = []

    def _read(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            return
        phoff, shoff = _numbers("<QQ", data, 32)
        phentsize, phnum, shentsize, shnum, shstrndx = _numbers("<5H", data, 54)
        for at in range(phnum):
            kind, _, offset, address, _, size = _numbers("<IIQQQQ", data, phoff + at * phentsize)
            if kind == 1:
                self.segments.append((offset, size, address))
        sections = [_numbers("<IIQQQQII", data, shoff + at * shentsize) for at in range(shnum)]
        names = _section(sections, shstrndx)
        for section in sections:
            name = data[names[4] + section[0] :].partition(b"\0")[0] if section[0] < names[5] else b""
            self.has_lines |= name == b".debug_line"
        tables = [section for section in sections if section[1] in (_SHT_SYMTAB, _SHT_DYNSYM)]
        if not tables:
            return
        table = min(tables, key=lambda section: section[1])  # the full one before the dynamic one
        size = table[5] // _SYMBOL.itemsize * _SYMBOL.itemsize
        if table[4] + size > len(data):
            raise DamagedElfError
        symbols = np.frombuffer(data[table[4] : table[4] + size], _SYMBOL)
        functions = symbols[((symbols["info"] & 15) == _STT_FUNC) & (symbols["section"] != 0)]
        self._symbols = functions[np.argsort(functions["value"], kind="stable")]
        self._starts = np.ascontiguousarray(self._symbols["value"])
        texts = _section(sections, table[6])
        self._texts = data[texts[4] : texts[4] + texts[5]]

    def address_of(self, file_offset: int) -> int | None:
        """Return the linked address of an offset in the file."""
        for offset, size, address in self.segments:
            if offset <= file_offset < offset + size:
                return file_offset - offset + address
        return None

    def function_at(self, address: int) -> tuple[str, int] | None:
        """Return (name, distance from its start) of the function that has an address."""
        at = int(np.searchsorted(self._starts, np.uint64(address), "right")) - 1
        if at < 0:
            return None
        symbol = self._symbols[at]
        distance = address - int(symbol["value"])
        if symbol["size"] and distance >= symbol["size"]:
            return None
        name = self._texts[int(symbol["name"]) :].partition(b"\0")[0].decode("utf-8", "replace")
        return name, distance


@dataclass
class _Mapping:
    start: int
    end: int
    offset: int
    path: str


class Symbols:
    """Names of the addresses of one program.

    Parameters
    ----------
    own_library : path of the preload library, whose frames are left out
    """

    def __init__(self, own_library: str) -> None:
        self._own = own_library
        self._mappings: list[_Mapping] = []
        self._starts: list[int] = []
        self._files: dict[str, Elf] = {}
        self._frames: dict[int, tuple[CallFrame, ...]] = {}
        self._addr2line = shutil.which("addr2line")
        self._filter = shutil.which("c++filt")

    def set_maps(self, text: str) -> None:
        """Set the process's memory mappings, as procfs lists them; named addresses keep their names."""
        self._mappings = []
        for line in text.splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/"):
                start, _, end = fields[0].partition("-")
                self._mappings.append(_Mapping(int(start, 16), int(end, 16), int(fields[2], 16), fields[5]))
        self._starts = [mapping.start for mapping in self._mappings]

    def learn(self, addresses: Iterable[int]) -> None:
        """Look up return addresses, all new ones of a file at once."""
        by_file: dict[str, list[tuple[int, int]]] = {}
        for address in sorted(set(addresses) - self._frames.keys()):
            at = bisect_right(self._starts, address - 1) - 1
            mapping = self._mappings[at] if at >= 0 else None
            if mapping is None or address - 1 >= mapping.end:
                self._frames[address] = (CallFrame(f"{address:#x}", "+0x0", ""),)
                continue
            elf = self._files.setdefault(mapping.path, Elf(mapping.path))
            linked = elf.address_of(address - 1 - mapping.start + mapping.offset)
            if linked is None:
                self._frames[address] = (self._unnamed(mapping, address - mapping.start + mapping.offset),)
            else:
                by_file.setdefault(mapping.path, []).append((address, linked))
        for path, pairs in by_file.items():
            lines = self._lines_of(self._files[path], [linked for _, linked in pairs])
            for address, linked in pairs:
                self._frames[address] = lines.get(linked) or (self._frame_by_symbol(self._files[path], linked),)

    @staticmethod
    def _unnamed(mapping: _Mapping, offset: int) -> CallFrame:
        return CallFrame(Path(mapping.path).name, f"+{offset:#x}", mapping.path)

    def _frame_by_symbol(self, elf: Elf, linked: int) -> CallFrame:
        function = elf.function_at(linked)
        if function is None:
            return CallFrame(Path(elf.path).name, f"+{linked + 1:#x}", elf.path)
        return CallFrame(self.demangle([function[0]])[0], f"+{function[1] + 1:#x}", elf.path)

    def _lines_of(self, elf: Elf, addresses: Sequence[int]) -> dict[int, tuple[CallFrame, ...]]:
        """Return functions, inlined ones first, and source lines by addr2line, if the file has them."""
        if self._addr2line is None or not elf.has_lines:
            return {}
        addresses_text = "\n".join(f"{address:#x}" for address in addresses)
        done = subprocess.run(
            [self._addr2line, "-a", "-i", "-f", "-C", "-e", elf.path],
            input=addresses_text,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        frames_by_address: dict[int, list[CallFrame]] = {}
        lines = iter(done.stdout.splitlines())
        frames: list[CallFrame] = []
        for line in lines:
            if line.startswith("0x"):
                frames = frames_by_address.setdefault(int(line, 16), [])
                continue
            location = next(lines, "??:0").partition(" (discriminator")[0]
            if not location.startswith("??"):
                frames.append(CallFrame(_short(line), Path(location).name, elf.path))
        return {address: tuple(frames) for address, frames in frames_by_address.items() if frames}

    def demangle(self, names: Sequence[str]) -> list[str]:
        """Return C++ names as in the source."""
        if self._filter is None or not any(name.startswith("_Z") for name in names):
            return list(names)
        done = subprocess.run(
            [self._filter], input="\n".join(names), capture_output=True, text=True, errors="replace", check=False
        )
        written = done.stdout.splitlines()
        return [_short(name) for name in written] if len(written) == len(names) else list(names)

    def only_runtime(self, frames: Sequence[int]) -> bool:
        """Return whether all known callers are in the languages' own libraries."""
        modules = {frame.module for address in frames for frame in self._frames.get(address, ())} - {self._own}
        return bool(modules) and all(_RUNTIME.search(module) for module in modules)

    def call_site(self, frames: Sequence[int]) -> str:
        """Return the callers, innermost first, without those that only forward an allocation."""
        chain = [frame for address in frames for frame in self._frames.get(address, ())]
        chain = [frame for frame in chain if frame.module != self._own]
        first = 0
        while first < len(chain) - 1 and (
            _FORWARDING.match(chain[first].function) or _RUNTIME.search(chain[first].module)
        ):
            first += 1
        names: list[str] = []
        for frame in chain[first : first + FRAMES_IN_A_NAME]:
            names.append(str(frame))
            if frame.function in ("main", "MAIN__"):
                break
        return " < ".join(names) or "unknown call site"


def _short(name: str) -> str:
    """Return a C++ function's name without the types of its parameters."""
    head = re.sub(r"\([^()]*\)( const)?$", "", name)
    return head if head and len(head) <= 120 else f"{(head or name)[:117]}..."
