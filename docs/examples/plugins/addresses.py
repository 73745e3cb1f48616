"""An importer of your own: a text file with one access of a warp a line, ``load 0x7f0000000080`` or ``store ...``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.importers import ImportResult
from buddysim.trace import BLOCK_DTYPE, OP_DTYPE, OP_LOAD, OP_STORE, WARP_DTYPE, Provenance, TraceWriter

SUMMARY = "text files of addresses, one access of a warp a line"
KINDS = {"load": OP_LOAD, "store": OP_STORE}
PAGE_BYTES, WARP_OPS = 2 * 2**20, 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the text file")


def import_trace(args: argparse.Namespace, command: str, progress: Callable[[str], object]) -> ImportResult:
    kinds, addresses = [], []
    for number, text in enumerate(Path(args.file).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        try:
            kind, address = text.split()
            kinds.append(KINDS[kind])
            addresses.append(int(address, 16))
        except (KeyError, ValueError):
            raise BuddysimError(f"{args.file}: line {number}: expected 'load 0x...' or 'store 0x...'") from None
    assumed = {"compute_gaps": "none between accesses", "contents": "not in the file"}
    with TraceWriter(
        args.output, Provenance("addresses", buddysim.__version__, args.file, "-", command, assumed)
    ) as writer:
        for page in sorted({address // PAGE_BYTES for address in addresses}):
            writer.add_allocation(f"page {page:#x}", page * PAGE_BYTES, PAGE_BYTES)
        n_warps = -(-len(addresses) // WARP_OPS)
        blocks, warps = np.zeros(n_warps, BLOCK_DTYPE), np.zeros(n_warps, WARP_DTYPE)
        blocks["block"] = blocks["first_warp"] = np.arange(n_warps)
        blocks["n_warps"] = 1
        warps["first_op"] = np.arange(n_warps) * WARP_OPS
        warps["n_ops"] = np.minimum(WARP_OPS, len(addresses) - warps["first_op"])
        ops = np.zeros(len(addresses), OP_DTYPE)
        ops["kind"], ops["first_line"], ops["n_lines"], ops["bytes_per_lane"] = kinds, np.arange(len(ops)), 1, 4
        whole = np.where(ops["kind"] == OP_STORE, 0xFF, 0x0F)  # all four sectors; a store writes them whole
        lines = np.array(addresses, np.uint64) >> np.uint64(7) << np.uint64(8) | whole.astype(np.uint64)
        writer.begin_kernel("accesses", (n_warps, 1, 1), (32, 1, 1))
        writer.add_blocks(blocks, warps, ops, lines)
        writer.end_kernel()
    return ImportResult(f"{args.output}: {len(addresses)} accesses by {n_warps} warps")
