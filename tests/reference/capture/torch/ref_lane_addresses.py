"""Reference model of `fill_addresses`."""

from __future__ import annotations

from collections.abc import Sequence

Part = Sequence[int]  # of an index: offset, row, column


def ref_lane_address(
    address: int, first: Sequence[Part], second: Sequence[Part], window: Sequence[int], index: tuple[int, int]
) -> int:
    """The address of the element at two indices; -1 where it is outside of an operand's window."""
    offset, row, column = (one + other for one, other in zip(first[index[0]], second[index[1]], strict=True))
    if not window:
        return address + offset
    rows, columns, row_stride, column_stride, row_bytes, column_bytes = window
    if row % row_stride or column % column_stride:
        return -1
    row, column = row // row_stride, column // column_stride
    if not (0 <= row < rows and 0 <= column < columns):
        return -1
    return address + offset + row * row_bytes + column * column_bytes


def ref_lane_addresses(
    address: int,
    first: Sequence[Part],
    second: Sequence[Part],
    window: Sequence[int],
    threads: Sequence[tuple[int, int]],
    blocks: Sequence[tuple[int, int, int, int]],
) -> list[int]:
    """The addresses of all threads of all blocks, in order; -1 where a thread is outside of its block's part."""
    addresses = []
    for first_at, first_k, end_at, end_k in blocks:
        for at, k in threads:
            index = first_at + at, first_k + k
            is_inside = index[0] < end_at and index[1] < end_k
            addresses.append(ref_lane_address(address, first, second, window, index) if is_inside else -1)
    return addresses
