"""Options of an import, and additional memory contents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.compress import DEFAULT

_MAX_SNAPSHOT_BYTES = 1 << 36


@dataclass(frozen=True)
class SnapshotFile:
    """Memory contents from a file: the bytes at `address` after `launch_index` launches."""

    path: Path
    address: int
    launch_index: int


@dataclass
class AccelsimImportOptions:
    """Options of an import.

    Parameters
    ----------
    skip_missing : skip kernel files that don't exist
    include_local : include operations on local memory
    snapshots : additional memory contents
    contents_every : keep the bytes of every n-th page of 8 KiB with known values; 0: none. Size maps always cover all
        known entries
    compressor : of the size maps
    source, licence : for the trace's provenance
    command : for the trace's provenance
    compression_level : of the trace file
    """

    skip_missing: bool = False
    include_local: bool = False
    snapshots: Sequence[SnapshotFile] = ()
    contents_every: int = 1
    compressor: str = DEFAULT
    source: str = ""
    licence: str = ""
    command: str = ""
    compression_level: int = 9


def parse_snapshot(text: str) -> list[SnapshotFile]:
    """Parse ``FILE@POINT``: a file named after its address, such as 0x7f0000000000.bin, or a folder of such files."""
    name, at, launch_index = text.rpartition("@")
    if not at or not name or not re.fullmatch(r"[0-9]{1,18}", launch_index, re.ASCII):
        raise BuddysimError(f"snapshot {text!r}: expected FILE@POINT, with the number of kernels completed before it")
    path = Path(name)
    if not path.exists():
        raise BuddysimError(f"{path}: no such file or folder")
    files = sorted(path.glob("*.bin")) if path.is_dir() else [path]
    if not files:
        raise BuddysimError(f"{path}: no .bin files: expected some named after the address of their bytes")
    return [SnapshotFile(file, _address_in_name(file), int(launch_index)) for file in files]


def _address_in_name(path: Path) -> int:
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19})\.bin", path.name, re.ASCII)
    address = int(match.group(1), 0 if match.group(1)[:2] in ("0x", "0X") else 10) if match else -1
    n = path.stat().st_size
    if not 0 <= address < 1 << 57:
        raise BuddysimError(f"{path}: expected a name such as 0x7f0000000000.bin, the address of its bytes")
    if n > _MAX_SNAPSHOT_BYTES:
        raise BuddysimError(f"{path}: {n} bytes, at most {_MAX_SNAPSHOT_BYTES} are possible")
    return address
