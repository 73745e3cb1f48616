"""The engine's division by multiplication equals Python's."""

from hypothesis import example, given
from hypothesis import strategies as st

from buddysim.probes.engine_parts import quotient_and_remainder

MOST = 2**32 - 1


@given(by=st.integers(1, 2**31) | st.integers(0, 31).map(lambda bit: 2**bit), x=st.integers(0, MOST))
@example(by=1, x=MOST)
@example(by=2**31, x=MOST)
@example(by=2**31 - 1, x=MOST)
def test_division_is_exact(by, x):
    assert quotient_and_remainder(by, x) == divmod(x, by)


@given(by=st.integers(1, 2**31), multiple=st.integers(0, MOST), offset=st.integers(-1, 1))
def test_division_is_exact_next_to_multiples(by, multiple, offset):
    x = min(max(multiple // by * by + offset, 0), MOST)
    assert quotient_and_remainder(by, x) == divmod(x, by)
