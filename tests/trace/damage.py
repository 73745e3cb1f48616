"""Damaged trace files: changed bytes, or changed sections with valid checksums."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from zlib import crc32

import zstandard

HEAD = 24
INTERESTING = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 65535, 65536, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)

Section = tuple[bytes, bytes]


def split(data: bytes) -> list[Section]:
    """Return (type, payload) of every section; the index is last."""
    sections, at = [], HEAD
    while True:
        kind, _, length = struct.unpack_from("<4sIQ", data, at)
        sections.append((kind, data[at + HEAD : at + HEAD + length]))
        at += HEAD + length + -length % 8
        if kind == b"INDX":
            return sections


def boundaries(data: bytes) -> list[int]:
    """Return the offset of every section, and the end of the last one."""
    at, offsets = HEAD, [HEAD]
    for _, payload in split(data):
        at += HEAD + len(payload) + -len(payload) % 8
        offsets.append(at)
    return offsets


def join(header: bytes, sections: list[Section], index: bytes | None = None) -> bytes:
    """Return a file of these sections with valid checksums; `index` replaces the valid index."""
    data, rows = header, b""
    for kind, payload in sections:
        chunk = payload[:28] if kind == b"CHNK" else bytes(28)
        instructions = payload[40:48] if kind == b"CHNK" else bytes(8)
        crc = crc32(payload)
        row = struct.pack("<4sIQQ", kind, crc, len(data), len(payload))
        rows += row + chunk.ljust(28, b"\0") + bytes(4) + instructions.ljust(8, b"\0")
        data += packed(kind, payload)
    start = len(data)
    data += packed(b"INDX", rows if index is None else index)
    footer = struct.pack("<QQ", start, len(data) + 32)
    return data + footer + struct.pack("<II8s", crc32(footer), 0, b"BUDDYEND")


def packed(kind: bytes, payload: bytes) -> bytes:
    head = struct.pack("<4sIQI", kind, 0, len(payload), crc32(payload))
    return head + struct.pack("<I", crc32(head)) + payload + bytes(-len(payload) % 8)


def scribble(rng: random.Random, data: bytes) -> bytes:
    """Return the data with changed bytes or words, a part removed or duplicated, or bytes inserted."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not changed:
            break
        at = rng.randrange(len(changed))
        change = rng.random()
        if change < 0.3:
            changed[at] ^= 1 << rng.randrange(8)
        elif change < 0.5:
            changed[at] = rng.choice(INTERESTING) & 255
        elif change < 0.85:
            at -= at % 4
            word = struct.pack("<I", rng.choice(INTERESTING))
            changed[at : at + 4] = word[: len(changed) - at]
        elif change < 0.9:
            del changed[at : at + rng.randrange(1, 40)]
        elif change < 0.95:
            changed[at:at] = changed[at : at + rng.randrange(1, 40)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 40))
    return bytes(changed)


def damaged_chunk(rng: random.Random, payload: bytes) -> bytes:
    """Return a chunk with damaged columns or counts in a valid zstd frame."""
    counts = list(struct.unpack_from("<10I", payload))
    (instructions,) = struct.unpack_from("<Q", payload, 40)
    columns = zstandard.ZstdDecompressor().decompress(payload[56:])
    if rng.random() < 0.5:
        columns = scribble(rng, columns)
    else:
        counts[rng.randrange(1, 10)] = rng.choice((*INTERESTING, rng.randrange(3000)))
        _, _, b, w, o, n, _, s, t, d = counts

        def width(shapes: int) -> int:
            return 1 if shapes <= 256 else 2 if shapes <= 65536 else 4

        size = 8 * b + 20 * t + width(t) * w + 26 * s + width(s) * o + 5 * n + 8 * d
        if size < 1 << 20:
            columns = (columns + rng.randbytes(16) * (size // 16 + 1))[:size]
    head = struct.pack("<10IQQ", *counts, instructions, len(columns))
    return head + zstandard.ZstdCompressor(level=1).compress(columns)


def adapt_end(sections: list[Section], at: int) -> None:
    """Set the counts at the end of a kernel to those of its only chunk, section `at`."""
    payload = sections[at][1]
    _, _, blocks, _, _, lines, memory = struct.unpack_from("<7I", payload)
    (instructions,) = struct.unpack_from("<Q", payload, 40)
    end = next(i for i in range(at, len(sections)) if sections[i][0] == b"KEND")
    sections[end] = (b"KEND", struct.pack("<QQQQI4x", instructions, memory, lines, blocks, 1))


def damaged_files(data: bytes, seed: int, rounds: int) -> Iterator[bytes]:
    """Return `rounds` damaged versions of a trace file."""
    rng = random.Random(seed)
    header, sections = data[:HEAD], split(data)[:-1]
    index = split(data)[-1][1]
    for _ in range(rounds):
        change = rng.random()
        changed = list(sections)
        at = rng.randrange(len(changed))
        kind, payload = changed[at]
        if change < 0.15:
            yield scribble(rng, data)
        elif change < 0.25:
            yield join(header, sections, scribble(rng, index))
        elif change < 0.6:
            changed[at] = (kind, scribble(rng, payload))
            yield join(header, changed)
        elif change < 0.75:
            other = rng.randrange(len(changed))
            move = rng.randrange(4)
            if move == 0:
                changed[at], changed[other] = changed[other], changed[at]
            elif move == 1:
                del changed[at]
            elif move == 2:
                changed.insert(other, changed[at])
            else:
                changed[at] = (changed[other][0], payload)
            yield join(header, changed)
        elif change < 0.8:
            cut = join(header, changed)
            yield cut[: rng.randrange(len(cut))]
        else:
            chunks = [i for i, (kind, _) in enumerate(sections) if kind == b"CHNK"]
            at = rng.choice(chunks)
            changed[at] = (b"CHNK", damaged_chunk(rng, sections[at][1]))
            adapt_end(changed, at)
            yield join(header, changed)
