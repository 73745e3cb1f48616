"""Division as the engine does it, one number at a time, for tests to hold against Python's."""


def quotient_and_remainder(uint32_t by, uint32_t x):
    """What `divide` and `remainder` say of `x` and a divisor of 1 to 2^31.

    Returns
    -------
    tuple of two int
    """
    cdef Divisor by_that = divisor(by)
    return divide(by_that, x), remainder(by_that, x)
