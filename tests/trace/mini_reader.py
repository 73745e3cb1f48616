"""A reader of trace files written from docs/reference/trace-format.md alone: `struct`, `zlib`, zstd, nothing of the
package."""

from __future__ import annotations

import struct
import zlib

import zstandard


def sections(data: bytes):
    """Return (type, payload) of every section, from the header to the index, after a check of all checksums."""
    magic, version, zero, crc, zero2 = struct.unpack_from("<8sIIII", data, 0)
    assert (magic, version, zero, zero2) == (b"\x8fBUDDY\r\n", 4, 0, 0)
    assert crc == zlib.crc32(data[:16])
    at = 24
    sections_before = []
    while True:
        kind, zero, n, crc, head_crc = struct.unpack_from("<4sIQII", data, at)
        assert zero == 0
        assert head_crc == zlib.crc32(data[at : at + 20])
        payload = data[at + 24 : at + 24 + n]
        assert crc == zlib.crc32(payload)
        end = at + 24 + n
        assert data[end : end + -end % 8] == bytes(-end % 8)
        if kind == b"INDX":
            check_index(data, at, payload, sections_before)
            return [(kind, payload) for kind, payload, _ in sections_before]
        sections_before.append((kind, payload, at))
        at = end + -end % 8


def check_index(data: bytes, at: int, index: bytes, sections_before: list) -> None:
    footer = data[-32:]
    offset, size, crc, zero, magic = struct.unpack("<QQII8s", footer)
    assert (offset, size, zero, magic) == (at, len(data), 0, b"BUDDYEND")
    assert crc == zlib.crc32(footer[:16])
    assert len(index) == 64 * len(sections_before)
    for i, (kind, payload, offset) in enumerate(sections_before):
        row = index[64 * i : 64 * i + 64]
        assert struct.unpack_from("<4sIQQ", row) == (kind, zlib.crc32(payload), offset, len(payload))
        if kind == b"CHNK":
            assert row[24:52] == payload[:28]
            assert row[56:64] == payload[40:48]
        else:
            assert row[24:] == bytes(40)


def texts(payload: bytes) -> dict[str, str]:
    (n,) = struct.unpack_from("<I", payload)
    at, words = 4, []
    for _ in range(2 * n):
        (length,) = struct.unpack_from("<I", payload, at)
        words.append(payload[at + 4 : at + 4 + length].decode())
        at += 4 + length
    assert at == len(payload)
    return dict(zip(words[::2], words[1::2], strict=True))


def unframe(frame: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(frame)


def chunk(payload: bytes) -> dict:
    """Return the ops of a chunk by (block, warp) as lists of (fields, lines), and the tails."""
    kernel, first, n_b, n_w, n_o, n_l, memory, n_s, n_t, n_d = struct.unpack_from("<10I", payload)
    instructions, size = struct.unpack_from("<QQ", payload, 40)
    columns = unframe(payload[56:])
    assert len(columns) == size
    at = 0

    def column(code: str, n: int) -> tuple:
        nonlocal at
        values = struct.unpack_from(f"<{n}{code}", columns, at)
        at += struct.calcsize(f"<{n}{code}")
        return values

    def index(shapes: int) -> str:
        return "B" if shapes <= 256 else "H" if shapes <= 65536 else "I"

    steps, block_warps = column("I", n_b), column("I", n_b)
    warp_shapes = list(zip(*[column("I", n_t) for _ in range(6)], strict=True))
    warp_index = column(index(n_t), n_w)
    op_shapes = list(zip(*[column(code, n_s) for code in "IIIIIHBBBBH"], strict=True))
    op_index = column(index(n_s), n_o)
    masks, deltas, wide = column("B", n_l), column("i", n_l), list(column("q", n_d))
    assert at == len(columns)

    warps = {}
    op = line = warp = block = before = counted = barriers = 0
    begun: dict[int, int] = {}
    for step, count in zip(steps, block_warps, strict=True):
        block = (block + step) % (1 << 32)
        for _ in range(count):
            number, n_ops, *tail = warp_shapes[warp_index[warp]]
            warp += 1
            counted += tail[0]
            ops = []
            for k in range(n_ops):
                fields = op_shapes[op_index[op]]
                op += 1
                counted += 1 + fields[0]
                barriers += fields[7] == 3
                lines = []
                for i in range(fields[6]):
                    delta = deltas[line] if deltas[line] != -(1 << 31) else wide.pop(0)
                    before = (begun.get(k, before) if i == 0 else before) + delta
                    if i == 0:
                        begun[k] = before
                    lines.append((before * 128, masks[line] & 15, masks[line] >> 4))
                    line += 1
                ops.append((fields, lines))
            warps[block, number] = (ops, tail)
    assert (warp, op, line, wide) == (n_w, n_o, n_l, [])
    assert (counted, n_o - barriers) == (instructions, memory)
    assert next(iter(warps), (first, 0))[0] == first
    return {"kernel": kernel, "warps": warps, "counts": (instructions, memory, n_l, n_b)}


def contents(payload: bytes, allocation_bytes: int) -> tuple[list[int], bytes]:
    """Return (page numbers, bytes) of a block of contents."""
    _, _, page, whole, _, before, n, _ = struct.unpack_from("<8I", payload)
    numbers = list(range(before, before + n)) if whole else list(struct.unpack_from(f"<{n}I", payload, 32))
    data = unframe(payload[32 if whole else 32 + 4 * n :])
    assert len(data) == sum(min(page, allocation_bytes - p * page) for p in numbers)
    return numbers, data


def size_map(payload: bytes) -> tuple[str, int, list[int]]:
    """Return (compressor, first entry, classes) of a block of a size map."""
    _, _, name, _, first, n, _ = struct.unpack_from("<II16sQQII", payload)
    packed = unframe(payload[48:])
    assert len(packed) == (n + 1) // 2
    classes = [half for byte in packed for half in (byte & 15, byte >> 4)][:n]
    return name.rstrip(b"\0").decode(), first, classes
