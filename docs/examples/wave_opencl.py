"""A wave runs over a square membrane: an OpenCL kernel per time step, with PyOpenCL (PyPI: pyopencl).

python wave_opencl.py [CELLS ON A SIDE] [STEPS]
"""

import sys

import numpy as np
import pyopencl as cl

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 256
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 30

KERNEL = """
kernel void wave(global const float *now, global const float *before, global float *after, int cells) {
    int x = get_global_id(0), y = get_global_id(1), at = y * cells + x;
    if (x == 0 || y == 0 || x == cells - 1 || y == cells - 1) return;
    float sum = now[at - 1] + now[at + 1] + now[at - cells] + now[at + cells];
    after[at] = 2.0f * now[at] - before[at] + 0.25f * (sum - 4.0f * now[at]);
}
"""

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
wave = cl.Program(context, KERNEL).build().wave
x, y = np.meshgrid(np.linspace(0, 1, cells), np.linspace(0, 1, cells))
hill = np.exp(-((x - 0.5) ** 2 + (y - 0.4) ** 2) / 0.003).astype(np.float32)
copy = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
now, before, after = (cl.Buffer(context, copy, hostbuf=hill) for _ in range(3))
for _ in range(steps):
    wave(queue, (cells, cells), (16, 16), now, before, after, np.int32(cells))
    before, now, after = now, after, before
result = np.empty_like(hill)
cl.enqueue_copy(queue, result, now)
queue.finish()
print(f"highest {result.max():.6f}, lowest {result.min():.6f}")
