"""Division as the engine does it, for tests that compare it with Python's."""


def quotient_and_remainder(uint32_t by, uint32_t x):
    """`divide` and `remainder` of `x` by a divisor of 1 to 2^31.

    Returns
    -------
    tuple of two int
    """
    cdef Divisor prepared = divisor(by)
    return divide(prepared, x), remainder(prepared, x)
