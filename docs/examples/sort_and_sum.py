"""Sorts random numbers with pyopencl's bitonic sort, and sums their squares: pip install pyopencl mako."""

import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.bitonic_sort import BitonicSort

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
numbers = cl.array.to_device(queue, np.random.default_rng(1).integers(0, 1 << 16, 1 << 16, dtype=np.uint32))
before = numbers.get()
ordered, _ = BitonicSort(context)(numbers)
assert np.array_equal(ordered.get(), np.sort(before))
floats = ordered.astype(np.float32) / 65536
print("sum of squares", cl.array.dot(floats, floats).get())
