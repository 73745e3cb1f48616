"""Packed files of every kind that commands unpack: methods of zip, heads of arrays, sparse and extended tar members."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable

import numpy as np

from tests.fuzz import good_files

Files = dict[str, bytes]

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
#: Sizes of members, and those that heads state.
_SIZES = (0, 1, 511, 512, 513, 4096, 1 << 20, 8 << 20)
_STATED = (*_SIZES, 1 << 31, (1 << 33) - 1, 1 << 40, 1 << 62)
_SHAPES = ("(", "()", "(3,)", "(3, 3)", "(-1,)", "(1099511627776,)", "(4611686018427387904, 4)", "None", "(2**40,)")
_DTYPES = ("|u1", "<u4", "|O", "<f8", "|V1099511627776", "x", "|u1, |O", "<U99999999")
_PACKERS: tuple[Callable[[bytes], bytes], ...] = (
    bytes, lambda data: lzma.compress(data, preset=0), lambda data: gzip.compress(data, 1), bz2.compress,
)  # fmt: skip


def archive(seed: int) -> Files:
    """Return a tar of a bundle whose members have other types and sizes, packed or not, sometimes damaged."""
    rng = random.Random(seed)
    out = io.BytesIO()
    bundle = good_files.bundle()
    changed = rng.randrange(2 * len(bundle))
    for number, (name, content) in enumerate(bundle.items()):
        out.write(_member(rng, name, content, is_changed=number == changed))
    for _ in range(rng.choice((0, 0, 1, 3, 30))):
        name = rng.choice(("x", "a/b", "../x", "/x", "x" * 300))
        out.write(_member(rng, name, bytes(rng.choice(_SIZES)), is_changed=not rng.randrange(4)))
    return {"x.tar": _damaged(rng, rng.choice(_PACKERS)(out.getvalue() + bytes(1024)))}


def _member(rng: random.Random, name: str, content: bytes, *, is_changed: bool) -> bytes:
    """A member with a right checksum, whatever it says."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    if is_changed:
        info.type = rng.choice([tarfile.GNUTYPE_SPARSE, *b"01234567LKxgSDV\0"]) if rng.randrange(2) else b"0"
        info.type = info.type if isinstance(info.type, bytes) else bytes([info.type])
        info.size = rng.choice((info.size, *_STATED))
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT, errors="replace"))
    if info.type == tarfile.GNUTYPE_SPARSE:
        block[386 : 386 + 24] = b"%011o\0%011o\0" % (rng.choice(_SIZES), rng.choice(_SIZES))
        block[483:495] = b"%011o\0" % min(rng.choice(_STATED), 8**11 - 1)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    return bytes(block) + content + bytes(-len(content) % 512)


def snapshot(seed: int) -> Files:
    """Return a spool whose snapshot is another zip: methods, heads of arrays, sizes in its directory."""
    rng = random.Random(seed)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good_files.spool()["snapshot-0.npz"])) as good:
        contents = {one.filename: good.read(one) for one in good.infolist()}
    method = rng.choice(_METHODS)
    with zipfile.ZipFile(out, "w", method if rng.randrange(2) else zipfile.ZIP_STORED) as packed:
        changed = rng.randrange(2 * len(contents))
        for number, (name, content) in enumerate(contents.items()):
            packed.writestr(name, _array(rng) if number == changed else content)
        if not rng.randrange(4):
            packed.writestr("more.npy", bytes(rng.choice(_SIZES)))
    data = bytearray(out.getvalue())
    if not rng.randrange(3):
        at = data.rfind(b"PK\1\2")
        struct.pack_into("<I", data, at + rng.choice((20, 24, 42)), rng.choice(_STATED) & 0xFFFFFFFF)
    files = {f"x.bin.incomplete/{name}": content for name, content in good_files.spool().items()}
    return files | {"x.bin.incomplete/snapshot-0.npz": _damaged(rng, bytes(data))}


def _array(rng: random.Random) -> bytes:
    """The file of an array with any head."""
    shape, dtype = rng.choice(_SHAPES), rng.choice(_DTYPES)
    head = f"{{'descr': {dtype!r}, 'fortran_order': {rng.choice(('False', 'True', '0'))}, 'shape': {shape}}}\n".encode()
    version = rng.choice((1, 1, 1, 2, 3, 9))
    length = len(head).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + head + np.zeros(rng.choice(_SIZES), np.uint8).tobytes()


def profile(seed: int) -> Files:
    """Return the profiler's trace of a step as gzip: several streams, long runs of blanks, damaged."""
    rng = random.Random(seed)
    text = json.dumps(good_files.profiler_trace()).encode()
    text = text[:1] + b" " * rng.choice((0, 0, *_SIZES)) + text[1:]
    cut = rng.randrange(len(text))
    parts = [text] if rng.randrange(2) else [text[:cut], text[cut:]]
    return {"x.json.gz": _damaged(rng, b"".join(gzip.compress(part, 1) for part in parts))}


def _damaged(rng: random.Random, data: bytes) -> bytes:
    if rng.randrange(3) or not data:
        return data
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed))] if not rng.randrange(4) else changed)
