"""The codec: decoding inverts encoding, the fast codec equals the reference model, damaged columns are refused."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.trace import codec
from buddysim.trace.format import column_bytes
from tests.reference.trace import ref_codec
from tests.trace.builders import line, records, streaming

U16 = st.sampled_from([0, 1, 65535])
U32 = st.one_of(st.integers(0, 3), st.integers(0, (1 << 32) - 1))


@st.composite
def lines_of(draw, kind):
    """Lines of one page, or anywhere; they follow from a seed, as drawing 64 of them takes longer than the codec."""
    n = 0 if kind == 3 else draw(st.sampled_from([1, 1, 1, 2, 3, 64]))
    rng, lines = random.Random(draw(st.integers(0, 2**32 - 1))), []
    for _ in range(n):
        number = rng.choice([(1 << 33) + rng.randint(0, 40), rng.getrandbits(56), 0, (1 << 56) - 1])
        sectors = rng.randint(1, 15)
        lines.append(line(number << 7, sectors, sectors & rng.randint(0, 15) if kind else 0))
    return lines


@st.composite
def ops_of(draw):
    kind = draw(st.integers(0, 3))
    fields = {name: draw(U32) for name in draw(st.sets(st.sampled_from(ref_codec.OP_FIELDS[:5])))}
    fields |= {"use_hops": draw(U16), "unit_busy_slots": draw(U16), "bytes_per_lane": draw(st.integers(0, 255))}
    return {**fields, "kind": kind, "flags": draw(st.integers(0, 7 if kind == 3 else 255))}, draw(lines_of(kind))


@st.composite
def warps_of(draw):
    fields = {
        name: draw(U32)
        for name in (
            "warp",
            "tail_gap_instructions",
            "tail_critical_path_cycles",
            "tail_critical_path_hops",
            "tail_unit_busy_slots",
        )
    }
    few = draw(st.lists(ops_of(), max_size=4))
    return fields, few * draw(st.integers(1, 3))


BLOCKS = st.lists(st.tuples(U32, st.lists(warps_of(), max_size=4)), max_size=4)


def counts_of(parts):
    return tuple(len(part) for part in parts)


@settings(max_examples=60, deadline=None)
@given(BLOCKS)
def test_fast_and_ref_agree_and_invert(blocks):
    original = records(blocks)
    columns, *shapes = codec.encode_columns(*original)
    ref_columns, *ref_shapes = ref_codec.encode(*original)
    assert shapes == ref_shapes
    assert columns.tobytes() == ref_columns
    assert len(columns) == column_bytes(*counts_of(original), *shapes)
    for decode, data in ((codec.decode_columns, columns), (ref_codec.decode, ref_columns)):
        for back, before in zip(decode(data, *counts_of(original), *shapes), original, strict=True):
            np.testing.assert_array_equal(back, before)


@pytest.mark.parametrize("n_shapes", [256, 257, 65536, 65537])
def test_every_width_of_index(n_shapes):
    part = streaming(1, 1, n_shapes)
    part[2]["gap_instructions"] = np.arange(n_shapes)
    part[2]["kind"], part[2]["use_distance"] = 1, 0
    columns, *shapes = codec.encode_columns(*part)
    assert shapes[0] == n_shapes
    back = codec.decode_columns(columns, *counts_of(part), *shapes)
    np.testing.assert_array_equal(back[2], part[2])


@pytest.mark.parametrize("version", [1, 2])
def test_columns_of_old_versions_lack_unit_busy_slots(version):
    """Version 1 has no such columns; version 2 has those of ops, but none of tails."""
    part = streaming(3)
    part[2]["unit_busy_slots"] = 5 if version == 2 else 0
    columns, n_op_shapes, n_warp_shapes, n_wide = codec.encode_columns(*part)
    blocks_end = 8 * len(part[0])
    tails_end = blocks_end + 24 * n_warp_shapes
    shapes_end = tails_end + len(part[1]) + 28 * n_op_shapes
    cut = {1: 2 * n_op_shapes, 2: 0}[version]
    parts = ((0, tails_end - 4 * n_warp_shapes), (tails_end, shapes_end - cut), (shapes_end, len(columns)))
    old = np.concatenate([columns[first:end] for first, end in parts])
    counts = (*counts_of(part), n_op_shapes, n_warp_shapes, n_wide)
    assert len(old) == column_bytes(*counts, version=version)
    fast = codec.decode_columns(old, *counts, version=version)
    reference = ref_codec.decode(old.tobytes(), *counts, version=version)
    for back, expected, before in zip(fast, reference, part, strict=True):
        np.testing.assert_array_equal(back, before)
        np.testing.assert_array_equal(expected, before)


@pytest.mark.parametrize("version", [0, 5])
def test_columns_of_other_versions_are_refused(version):
    with pytest.raises(ValueError, match=f"version {version}"):
        codec.decode_columns(b"", 0, 0, 0, 0, 0, 0, 0, version=version)


def test_streaming_lines_cost_almost_nothing():
    part = streaming(64)
    columns, op_shapes, warp_shapes, wide = codec.encode_columns(*part)
    assert (op_shapes, warp_shapes, wide) == (3, 4, 0)
    deltas = np.frombuffer(columns.tobytes()[-4 * len(part[3]) :], "<i4")
    assert len(np.unique(deltas[48:])) == 1  # the first warp has no predecessor


@pytest.mark.parametrize(("kind", "known"), [(0, True), (1, True), (2, True), (3, False)])
def test_a_barrier_has_neither_words_nor_meetings(kind, known):
    lines = [] if kind == 3 else [line(0, 1)]
    records_of = records([(0, [({}, [({"kind": kind, "flags": 31 << 3}, lines)])])])
    if known:
        assert codec.check_records(*records_of) is None
    else:
        with pytest.raises(codec.CodecError, match="op 0: it has unknown flags"):
            codec.check_records(*records_of)


def test_instructions_are_counted():
    part = records(
        [
            (
                0,
                [
                    (
                        {"tail_gap_instructions": 7},
                        [({"gap_instructions": 3}, [line(0)]), ({"gap_instructions": (1 << 32) - 1, "kind": 3}, [])],
                    ),
                    ({}, []),
                ],
            )
        ]
    )
    assert codec.count_instructions(part[1], part[2]) == (2 + 7 + 3 + (1 << 32) - 1, 1)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_columns_decode_as_the_ref_codec_decodes_them(data):
    part = records(
        [
            (b, [({"warp": w}, [({"kind": 1}, [line(4096 * b, 3, 1)] * 2), ({"kind": 3}, [])]) for w in (0, 1)])
            for b in (0, 1)
        ]
    )
    columns, *shapes = codec.encode_columns(*part)
    damaged = bytearray(columns.tobytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.one_of(st.sampled_from([0, 1, 2, 127, 128, 255]), st.integers(0, 255)))
    results = []
    for decode in (codec.decode_columns, ref_codec.decode):
        try:
            results.append(decode(bytes(damaged), *counts_of(part), *shapes, 5, 3))
        except ValueError:
            results.append(None)
    fast, reference = results
    assert (fast is None) == (reference is None)
    if fast is not None:
        for a, b in zip(fast, reference, strict=True):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=7, max_size=7), st.binary(max_size=400), st.booleans())
def test_any_bytes_under_any_counts(counts, data, fitting):
    if fitting:
        data = (
            (data * (1 + column_bytes(*counts) // max(len(data), 1)))[: column_bytes(*counts)]
            if data
            else bytes(column_bytes(*counts))
        )
    try:
        fast = codec.decode_columns(data, *counts)
    except ValueError:
        fast = None
    try:
        reference = ref_codec.decode(data, *counts)
    except ValueError:
        reference = None
    assert (fast is None) == (reference is None)


def test_decoding_refuses_counts_beyond_32_bits():
    with pytest.raises(ValueError, match="2\\^32"):
        codec.decode_columns(b"", 0, 0, 1 << 32, 0, 0, 0, 0)
