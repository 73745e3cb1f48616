"""Reference model of `coalesce`."""

from __future__ import annotations

from collections.abc import Sequence


def ref_coalesce(addresses: Sequence[int], bytes_per_lane: int, store: bool) -> list[int]:
    """The line records of one warp instruction; a lane of a negative address is off."""
    touched: dict[int, set[int]] = {}
    for address in addresses:
        if address >= 0:
            for byte in range(address, address + bytes_per_lane):
                touched.setdefault(byte // 128, set()).add(byte % 128)
    records = []
    for line, bytes_written in touched.items():
        sectors = sum(1 << sector for sector in range(4) if any(byte // 32 == sector for byte in bytes_written))
        whole = sum(1 << sector for sector in range(4) if bytes_written >= set(range(32 * sector, 32 * sector + 32)))
        records.append(line << 8 | (whole << 4 if store else 0) | sectors)
    return records
