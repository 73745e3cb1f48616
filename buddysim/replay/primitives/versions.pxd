"""Two versions of the hot path: for every CPU, and for x86-64 with AVX2, BMI1 and BMI2.

The latter have fewer instructions for variable shifts, bit searches and vector copies (5 % fewer per line). Results are equal.
"""
from libc.stdint cimport int64_t

cdef extern from * nogil:
    """
    #include "processor.h"
    /* Precedes the type of a function. Cython repeats that type for the function's result, where it has no effect. */
    #if defined(__x86_64__) && defined(__GNUC__)
    #pragma GCC diagnostic ignored "-Wattributes"
    #define NEWER_CPU __attribute__((target("avx2,bmi,bmi2")))
    #define cpu_is_newer() (processor_has("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
    #else
    #define NEWER_CPU
    #define cpu_is_newer() 0
    #endif
    """
    ctypedef int64_t int64_on_newer "NEWER_CPU int64_t"     # result type of a function that only newer CPUs run
    bint cpu_is_newer() noexcept
