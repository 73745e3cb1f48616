"""The decoder of packed records: agreement with its reference model, and contradictory and damaged records."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.importers.opencl.decoder import PackedDecoder
from tests.importers.opencl.captures import Record, packed
from tests.reference.importers.opencl.ref_decoder import RefDecodedLaunch, RefDecodedOp, decode

N_GROUPS, N_WARPS = 4, 3


@st.composite
def captures(draw: st.DrawFn) -> list[Record]:
    warps = draw(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, N_GROUPS - 1), st.integers(0, N_WARPS - 1)), max_size=12)
    )
    records: list[Record] = []
    for launch, group, warp in sorted(set(warps)):
        for _ in range(draw(st.integers(1, 12))):
            base = draw(st.integers(1 << 20, 1 << 61))
            distances = draw(st.lists(st.integers(-2000, 2000), max_size=31))
            width = draw(st.sampled_from([1, 4, 8, 16]))
            records.append(
                (launch, group, warp, draw(st.integers(0, 2)), width, [base, *(base + d for d in distances)])
            )
    return records


def run(data: bytes, cuts: list[int], first: int, end: int) -> list[RefDecodedLaunch]:
    decoder = PackedDecoder("warp.trace", first, end)
    launches: list[RefDecodedLaunch] = []

    def take() -> None:
        blocks, warps, ops, lines = decoder.pop_records()
        for block in blocks:
            for warp in warps[block["first_warp"] : block["first_warp"] + block["n_warps"]]:
                ops_of_warp = [
                    RefDecodedOp(
                        int(op["kind"]),
                        int(op["bytes_per_lane"]),
                        lines[op["first_line"] : op["first_line"] + op["n_lines"]].tolist(),
                        int(op["gap_instructions"]),
                        int(op["use_distance"]),
                    )
                    for op in ops[warp["first_op"] : warp["first_op"] + warp["n_ops"]]
                ]
                launches[-1].warps[int(block["block"]), int(warp["warp"])] = ops_of_warp

    for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
        decoder.push(data[start:stop])
        while decoder.step():
            if decoder.finished >= 0:
                take()
            else:
                decoder.set_kernel(N_GROUPS, N_WARPS)
                launches.append(RefDecodedLaunch(decoder.launch))
        if decoder.launch >= 0:
            take()
    decoder.finish()
    if decoder.finished >= 0:
        take()
    return launches


@given(captures(), st.data())
def test_agrees_with_reference_model(records: list[Record], data: st.DataObject) -> None:
    text = packed(records)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    first, end = data.draw(st.sampled_from([(0, 5), (1, 3), (2, 4)]))
    assert run(text, cuts, first, end) == decode(text, first, end)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([(1, 0, 0, 0, 4, [4096]), (0, 0, 0, 0, 4, [4096])], "comes after a later one"),
        ([(0, 1, 0, 0, 4, [4096]), (0, 0, 0, 0, 4, [4096])], "work-group is out of order"),
        ([(0, 9, 0, 0, 4, [4096])], "work-group is out of order or outside"),
        ([(0, 0, 1, 0, 4, [4096]), (0, 0, 0, 0, 4, [4096])], "warp is out of order"),
        ([(0, 0, 0, 3, 4, [4096])], "isn't 0 to 2"),
        ([(0, 0, 0, 0, 0, [4096])], "1 to 128 bytes"),
        ([(0, 0, 0, 0, 4, [1 << 62])], "beyond 2^62"),
        ([(0, 0, 0, 0, 4, [10, -10])], "beyond 2^62"),
    ],
)
def test_contradictory_records_are_refused(records: list[Record], expected: str) -> None:
    with pytest.raises(BuddysimError, match="record at offset") as caught:
        run(packed(records), [], 0, 5)
    assert expected in str(caught.value)


def test_damaged_records_never_crash() -> None:
    rng = random.Random(3)
    records: list[Record] = [
        (launch, group, warp, rng.randrange(3), 4, [4096 + 4 * lane for lane in range(rng.randint(1, 32))])
        for launch in range(3)
        for group in range(N_GROUPS)
        for warp in range(N_WARPS)
    ]
    original = packed(records)
    refused = 0
    for _ in range(500):
        data = bytearray(original)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        try:
            run(bytes(data), [len(data) // 2], 0, 5)
        except BuddysimError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 100
