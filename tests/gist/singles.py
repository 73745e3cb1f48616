"""Single-precision values for tests of encodings: every class of bit patterns, and values next to bounds."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from buddysim.gist.formats import FORMATS

EDGES = sorted(
    {0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0x3F800000}
    | {
        int(np.float32(bound).view(np.uint32)) + step
        for one in FORMATS.values()
        for bound in (one.min_normal, one.largest, 2 * one.largest, one.min_normal / 2)
        for step in (-2, -1, 0, 1, 2)
    }
)


@st.composite
def _near_a_tie(draw: st.DrawFn) -> int:
    """Generate a pattern whose dropped bits are a half, or differ from it by one, in some format."""
    dropped = 23 - draw(st.sampled_from([one.mantissa_bits for one in FORMATS.values()]))
    retained = draw(st.integers(0, (1 << (31 - dropped)) - 1))
    return retained << dropped | (1 << (dropped - 1)) + draw(st.integers(-1, 1))


magnitudes = st.one_of(
    st.sampled_from(EDGES),
    st.integers(0, 0x7FFFFFFF),
    _near_a_tie(),
    st.integers(1, 0x7FFFFF),  # subnormals
    st.integers(0x7F800001, 0x7FFFFFFF),  # NaN with any payload
    st.integers(0x70, 0x90).flatmap(lambda e: st.integers(e << 23, (e + 1 << 23) - 1)),  # about 1
)
patterns = st.tuples(magnitudes, st.integers(0, 1)).map(lambda both: both[0] | both[1] << 31)


def arrays(max_length: int = 300, element: st.SearchStrategy[int] = patterns) -> st.SearchStrategy[NDArray[np.float32]]:
    """Return an array of float32 with these bits."""
    return st.lists(element, max_size=max_length).map(lambda bits: np.array(bits, np.uint32).view(np.float32))
